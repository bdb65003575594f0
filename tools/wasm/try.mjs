// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Tries the module with real servers, which it starts in a folder of its own.
//
//     node try.mjs [PROGRAM]    PROGRAM: redis-server or valkey-server; default: redis-server
//
// Exit code 0: all steps have passed.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { once, setMaxListeners } from 'node:events';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

import { Client } from './shell.mjs';

const PROGRAM = process.argv[2] ?? 'redis-server';
const BUSY = 1;
const CANCELLED = 5;
const INVALID = -11;
const NO_MEMORY = -14;
const NOT_REPLICATED = -7;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'redlatch-wasm-'));

// ---- servers -----------------------------------------------------------------------------------

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const servers = [];

async function start(words, ready) {
  const server = spawn(PROGRAM, words.map(String), { stdio: ['ignore', 'pipe', 'inherit'] });
  servers.push(server);
  for await (const line of createInterface(server.stdout)) {
    if (ready.test(line)) break;
  }
  server.stdout.resume();
}

// @return the path of its socket.
async function startServer(name, port, ...options) {
  const socket = path.join(folder, `${name}.sock`);
  await start(['--port', port, '--bind', '127.0.0.1', '--unixsocket', socket, '--save', '',
    '--dir', folder, '--dbfilename', `${name}.rdb`, ...options], /ready to accept connections/i);
  return socket;
}

async function startSentinel(port, primary) {
  const file = path.join(folder, 'sentinel.conf');
  fs.writeFileSync(file, `port ${port}\nbind 127.0.0.1\ndir ${folder}\n` +
    `sentinel monitor main 127.0.0.1 ${primary} 1\n`);
  await start([file, '--sentinel'], /\+monitor/);
}

// One command on a connection of its own. @return the reply as it came.
async function say(socket, ...words) {
  const connection = net.connect(socket);
  connection.end(words.join(' ') + '\r\n');
  let reply = '';
  for await (const bytes of connection) reply += bytes;
  return reply;
}

async function ask(socket, ...words) {
  const reply = await say(socket, ...words);
  assert(!reply.startsWith('-'), reply);
  return reply;
}

// Waits until `seen` is true.
async function until(what, seen) {
  const limit = performance.now() + 20_000;
  while (!(await seen())) {
    assert(performance.now() < limit, `${what}: not seen`);
    await sleep(10);
  }
}

const statusOf = (promise) => promise.then(() => 0, (failure) => failure.status ?? failure);
// A release that finds no memory is repeated.
async function release(lease) {
  while (await statusOf(lease.release()) === NO_MEMORY) await sleep(1);
}

const into = (log) => (level, text) => log.push(`${level} ${text}`);
// The clients of the server, by CLIENT LIST.
const clientsAt = async (socket) =>
  (await ask(socket, 'CLIENT', 'LIST')).split('\n').filter((line) => /\bname=\S/.test(line));

async function killClients(socket) {
  for (const type of ['normal', 'pubsub']) {
    await ask(socket, 'CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
  }
}

// ---- what is tried -----------------------------------------------------------------------------

async function tryLock(url, options = {}) {
  const client = await Client.open(url, { options });
  const first = await client.lock('orders', { wait: 10_000 });
  assert(first.fence > 0n);
  await first.release();
  await first.release(); // the second call does nothing
  const second = await client.lock('orders', { wait: 10_000 });
  assert(second.fence > first.fence);
  assert.equal(await statusOf(client.lock('')), INVALID);
  assert.equal(await statusOf(client.lock('orders', { ttl: 1 })), INVALID);
  assert.equal(await statusOf(client.lock('orders', { options: { no_such: 1 } })), INVALID);
  await client.close(); // which releases the second
  assert.equal(client.connectionCount, 0);

  const other = await Client.open(url, { options });
  await (await other.lock('orders', { wait: 10_000 })).release(); // well below the ttl
  await other.close();
}

// By a message of the server: the waiter does not poll.
async function tryHandOff(url, socket) {
  const [holder, waiter] = [await Client.open(url), await Client.open(url)];
  const lease = await holder.lock('orders');
  assert.equal(await statusOf(waiter.lock('orders', { wait: 0 })), BUSY);
  const clients = await clientsAt(socket);
  assert.equal(clients.length, 2);
  assert(clients.every((line) => /\bresp=3\b/.test(line)), clients.join('\n'));

  const stop = new AbortController();
  const cancelled = statusOf(waiter.lock('orders', { signal: stop.signal }));
  const granted = waiter.lock('orders');
  await until('a place in the queue', () => queueOf(socket));
  stop.abort();
  assert.equal(await cancelled, CANCELLED);
  await lease.release();
  const next = await granted;
  assert(next.fence > lease.fence);
  await next.release();
  await Promise.all([holder.close(), waiter.close()]);
}

// The queue of the lock at the server; undefined: there is none.
async function queueOf(socket) {
  const keys = (await ask(socket, 'KEYS', '*')).split('\r\n').filter((line) => /orders/.test(line));
  for (const key of keys) {
    if (/zset/.test(await ask(socket, 'TYPE', key))) return key;
  }
  return undefined;
}

// The lease outlives its connection, and the waiter keeps its place.
async function tryKilled(url, socket) {
  const log = [];
  const options = { log: into(log) };
  const [holder, waiter] = [await Client.open(url, options), await Client.open(url, options)];
  const lease = await holder.lock('orders');
  const granted = waiter.lock('orders', { ttl: 1_500 });
  await until('a place in the queue', () => queueOf(socket));
  const before = await clientsAt(socket);
  await killClients(socket);
  const ids = new Set(before.map((line) => line.split(' ')[0]));
  await until('new connections', async () => {
    const after = await clientsAt(socket);
    return after.length === 2 && after.every((line) => !ids.has(line.split(' ')[0]));
  });
  assert(!lease.signal.aborted);
  await lease.release();
  const next = await granted;
  assert(next.fence > lease.fence);

  // A lease that is gone is lost, as its renewal shows.
  const lost = once(next.signal, 'abort');
  await ask(socket, 'FLUSHALL');
  await lost;
  await Promise.all([holder.close(), waiter.close()]);
  assert.deepEqual(log, []);
}

// Without memory calls fail, and the client continues: exceptions of C++ arrive.
async function tryNoMemory(url) {
  const client = await Client.open(url, { memoryLimit: 4 * 1024 * 1024 });
  const lease = await client.lock('orders');
  const stop = new AbortController();
  setMaxListeners(0, stop.signal);
  const waiters = [];
  const seen = new Map(); // how many ended with each status
  while (!seen.has(NO_MEMORY)) {
    const signal = waiters.length < 100 ? undefined : stop.signal;
    waiters.push(statusOf(client.lock('orders', { signal }).then(release))
      .then((status) => seen.set(status, (seen.get(status) ?? 0) + 1)));
    if (waiters.length % 20 === 0) await sleep(0);
    assert(waiters.length < 20_000);
  }
  assert(!lease.signal.aborted);
  stop.abort();
  await release(lease);
  await Promise.all(waiters);
  assert.deepEqual([...seen.keys()].sort(), [NO_MEMORY, 0, CANCELLED].sort());
  assert.equal(seen.get(0), 100);
  await (await client.lock('orders', { wait: 0 })).release();
  await client.close();
  console.log(`no memory for ${waiters.length} waiters`);
}

// A changed password loses no lease: the application gives the new one when it is asked.
async function tryPasswords(socket) {
  let password = 'old';
  const asked = [];
  const change = (to) => ask(socket, 'ACL', 'SETUSER', 'app', 'on', 'resetpass', `>${to}`, '~*',
    '&*', '+@all');
  await change(password);
  const credentials = async () => {
    asked.push(password);
    return { user: 'app', password };
  };
  const client = await Client.open(`unix://${socket}`, { credentials });
  const lease = await client.lock('orders');
  assert.deepEqual(asked, ['old']);
  assert((await clientsAt(socket)).every((line) => /\buser=app\b/.test(line)));
  password = 'new';
  await change(password);
  await killClients(socket);
  await until('the new password', () => asked.at(-1) === 'new');
  await lease.release();
  await (await client.lock('orders')).release();
  await client.close();
}

// A lease that a replica has confirmed outlives the move to that replica.
async function tryFailover() {
  const [first, second, port] = [await freePort(), await freePort(), await freePort()];
  const primary = await startServer('primary', first, '--repl-diskless-sync-delay', 0);
  await startServer('replica', second, '--replicaof', '127.0.0.1', first);
  await until('a replica', async () => /state=online/.test(await ask(primary, 'INFO')));
  await startSentinel(port, first);
  const log = [];
  const url = `redis-sentinel://127.0.0.1:${port}/main`;
  const client = await Client.open(url, { log: into(log) });
  const lease = await client.lock('orders', { options: { min_replicas: 1 } });
  const unconfirmed = client.lock('invoices', { options: { min_replicas: 2 } });
  assert.equal(await statusOf(unconfirmed), NOT_REPLICATED);
  await (await client.lock('invoices', { wait: 10_000 })).release();
  // The sentinel refuses until it has heard from the replica.
  const sentinel = { host: '127.0.0.1', port };
  await until('a failover', async () =>
    (await say(sentinel, 'SENTINEL', 'FAILOVER', 'main')).startsWith('+OK'));
  await until('the other primary', () =>
    log.some((line) => line.startsWith(`info connected to redis://127.0.0.1:${second},`)));
  assert(!lease.signal.aborted);
  await lease.release();
  const next = await client.lock('orders');
  assert(next.fence > lease.fence);
  await next.release();
  await client.close();
}

// ---- all of it ---------------------------------------------------------------------------------

async function step(what, act) {
  const start = performance.now();
  await act();
  console.log(`${what}: ok, ${(performance.now() - start).toFixed(0)} ms`);
}

try {
  const one = await startServer('one', await freePort());
  const url = `unix://${one}`;
  await step('lock and release', () => tryLock(url));
  await step('hand-off', () => tryHandOff(url, one));
  await step('killed connections', () => tryKilled(url, one));
  await step('a changed password', () => tryPasswords(one));
  await step('no memory', () => tryNoMemory(url));

  const port = await freePort();
  const node = await startServer('node', port, '--cluster-enabled', 'yes',
    '--cluster-config-file', 'nodes.conf', '--cluster-port', await freePort());
  await ask(node, 'CLUSTER', 'ADDSLOTSRANGE', 0, 16383);
  await until('a cluster', async () =>
    /cluster_state:ok/.test(await ask(node, 'CLUSTER', 'INFO')));
  await step('a cluster', () => tryLock(`redis+cluster://127.0.0.1:${port}`));
  await step('a node of a cluster', () => tryLock(`redis://127.0.0.1:${port}`));

  const nodes = [url];
  for (const name of ['two', 'three']) {
    nodes.push(`unix://${await startServer(name, await freePort())}`);
  }
  await step('a Redlock', () => tryLock(nodes.join(' '), { restart_guard: 'off', fenced: 'yes' }));
  await step('sentinels and replicas', tryFailover);
} finally {
  for (const server of servers) server.kill();
  await Promise.all(servers.map((server) => server.exitCode ?? once(server, 'exit')));
  fs.rmSync(folder, { recursive: true });
}
