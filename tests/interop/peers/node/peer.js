// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors

// A process with Node's lock library that does what it is told, one JSON object per line: see
// tests/interop/peer.py.
"use strict";
const fs = require("fs");
const readline = require("readline");
const { setTimeout: sleep } = require("timers/promises");
const Redis = require("ioredis");
const { default: Redlock, ExecutionError } = require("redlock");

const clients = new Map();
const held = new Map();
const blocks = new Map(); // of using(): the signal, how to end the block, and its promise
const owners = new Map(); // the last promise of each: an owner does one thing after the other

// The clock of time.monotonic() and System.nanoTime(). It fits: 2^53 ns are 104 days of uptime,
// and beyond them only the last digits go.
const monotonic = () => Number(process.hrtime.bigint());

const PAUSE_MS = 200; // of the library, of which it takes or adds up to 100

async function take(client, { name, wait_ms: waitMs, ttl_ms: leaseMs }) {
  const retryCount = waitMs < 0 ? -1 : Math.ceil(waitMs / PAUSE_MS);
  try {
    return await client.acquire([name], leaseMs, { retryCount });
  } catch (error) {
    if (error instanceof ExecutionError) return null;
    throw error;
  }
}

// Take, add one to the number in a file, slowly, and give back, until the time is over.
async function member(client, request, end) {
  let count = 0;
  while (performance.now() < end) {
    const lock = await take(client, request);
    if (lock === null) continue;
    // Later, the others may be gone.
    if (performance.now() < end) {
      const number = Number(fs.readFileSync(request.counter, "utf8"));
      await sleep(request.hold_ms);
      fs.writeFileSync(request.counter, String(number + 1));
      count += 1;
    }
    await lock.release();
  }
  return count;
}

// Once: a try again of what is refused would only take time.
const ONCE = { retryCount: 0 };

const commands = {
  clock: () => monotonic(),
  open({ client, url }) {
    const connection = new Redis(url);
    connection.on("error", () => {}); // A server that has ended: of another test.
    clients.set(client, new Redlock([connection]));
  },
  async acquire(request) {
    const lock = await take(clients.get(request.client), request);
    if (lock !== null) held.set(keyOf(request), lock);
    return lock !== null;
  },
  async release(request) {
    await clients.get(request.client).release(held.get(keyOf(request)), ONCE);
  },
  async extend(request) {
    const client = clients.get(request.client);
    held.set(keyOf(request), await client.extend(held.get(keyOf(request)), request.ttl_ms, ONCE));
  },
  // A block of using(), which lasts until `finish`.
  using(request) {
    const { client, name, ttl_ms: leaseMs, threshold_ms: automaticExtensionThreshold } = request;
    return new Promise((begun, refused) => {
      const block = {};
      const routine = (signal) => {
        blocks.set(keyOf(request), Object.assign(block, { signal }));
        begun();
        return new Promise((finish) => Object.assign(block, { finish }));
      };
      const settings = { automaticExtensionThreshold };
      block.done = clients.get(client).using([name], leaseMs, settings, routine);
      block.done.catch(refused);
    });
  },
  // Until the signal of the block aborts.
  aborted(request) {
    const { signal } = blocks.get(keyOf(request));
    return new Promise((resolve) => {
      signal.addEventListener("abort", () => resolve(true));
      if (signal.aborted) resolve(true);
    });
  },
  async finish(request) {
    const block = blocks.get(keyOf(request));
    block.finish();
    await block.done;
  },
  api: () => Object.getOwnPropertyNames(Redlock.prototype),
  crowd(request) {
    const end = performance.now() + request.run_ms;
    const client = clients.get(request.client);
    return Promise.all(Array.from({ length: request.threads }, () => member(client, request, end)));
  },
};

const keyOf = ({ owner, client, name }) => JSON.stringify([owner, client, name]);

async function answer(request) {
  const reply = { id: request.id, from: monotonic(), value: null };
  try {
    reply.value = (await commands[request.do](request)) ?? null;
  } catch (error) {
    reply.error = `${error.name}: ${error.message}`;
  }
  reply.to = monotonic();
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}

const input = readline.createInterface({ input: process.stdin });
input.on("line", (line) => {
  const request = JSON.parse(line);
  const last = owners.get(request.owner) ?? Promise.resolve();
  owners.set(request.owner, last.then(() => answer(request)));
});
input.on("close", () => process.exit(0));
