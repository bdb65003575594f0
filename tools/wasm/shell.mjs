// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The shell of the module in Node: sockets, timers, clock, random bytes. It decides nothing about
// locks. Each client has an instance of its own.
//
//     const client = await Client.open('redis://localhost');
//     const lease = await client.lock('orders', { ttl: 30_000, wait: 5_000, signal });
//     lease.fence, lease.signal, await lease.release();
//     await client.close();

import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import { randomFillSync } from 'node:crypto';

const FILE = new URL('./redlatch.wasm', import.meta.url);
const LOST = 3; // a state of a lease
const PAGE = 65_536;
const INITIAL_PAGES = 32; // INITIAL_BYTES of build.py
const DEFAULT_LIMIT = 256 * 1024 * 1024;
const LONGEST_TIMER_MS = 60_000;
const NEVER = 2n ** 63n - 1n;
const LEVELS = ['', 'error', 'warning', 'info'];

// ---- the clock ---------------------------------------------------------------------------------

// hrtime() stops while the machine is suspended, and os.uptime() continues, but is read from a
// file, and in steps of 10 ms. So it is read once a second, and when the wall clock has jumped.
const uptime = () => BigInt(Math.round(os.uptime() * 1e9));
const SECOND = 1_000_000_000n;
const STEPS = 20_000_000n;
const SUSPENDED_AT_START = uptime() - process.hrtime.bigint();
let suspended = SUSPENDED_AT_START;
let lookedAt = 0n;
let wallAhead = 0;

function now() {
  const time = process.hrtime.bigint();
  const ahead = Date.now() - Number(time / 1_000_000n);
  if (time - lookedAt > SECOND || Math.abs(ahead - wallAhead) > 10) {
    lookedAt = time;
    wallAhead = ahead;
    const seen = uptime() - time;
    if (seen - suspended > STEPS) suspended = seen;
  }
  return time + suspended;
}

// ---- clients -----------------------------------------------------------------------------------

let compiled;

export class Failure extends Error {
  constructor(status, message) {
    super(message || `status ${status}`);
    this.status = status;
  }
}

export class Client {
  #exports;
  #memory;
  #wires = new Map(); // sockets, by the number of the wire
  #calls = new Map(); // what settles the promise, by the number of the call
  #leases = new Map();
  #timer = null;
  #closed = null;
  #shut;
  #credentials;

  // `options`: of docs/options.md. `log`: takes level and text of background events.
  // `credentials`: gives { user, password, validFor } when they are needed; user and validFor, in
  // milliseconds, may be missing. `memoryLimit`: in bytes; calls that find no memory fail.
  static async open(url, { options = {}, log = () => {}, credentials,
    memoryLimit = DEFAULT_LIMIT } = {}) {
    compiled ??= WebAssembly.compile(fs.readFileSync(FILE));
    const client = new Client();
    client.#memory = new WebAssembly.Memory({
      initial: INITIAL_PAGES,
      maximum: Math.max(INITIAL_PAGES, Math.floor(memoryLimit / PAGE)),
    });
    const instance = await WebAssembly.instantiate(await compiled, client.#imports(log));
    client.#exports = instance.exports;
    client.#exports._initialize();
    for (const [name, value] of Object.entries(options)) {
      client.#check(client.#exports.rl_set(client.#put(Buffer.from(`${name}=${value}`))));
    }
    client.#check(client.#exports.rl_open(client.#put(Buffer.from(url))));
    client.#credentials = credentials;
    if (credentials !== undefined) client.#event('rl_watch_credentials');
    return client;
  }

  // `wait`: in milliseconds; -1: without limit; 0: one try. `options`: of docs/options.md.
  lock(name, { ttl = 30_000, wait = -1, signal, options = {} } = {}) {
    for (const [option, value] of Object.entries(options)) {
      this.#check(this.#exports.rl_set_acquire(this.#put(Buffer.from(`${option}=${value}`))));
    }
    const size = this.#put(Buffer.from(name));
    const number = this.#event('rl_acquire', size, BigInt(ttl), BigInt(wait));
    const promise = this.#started(number, (fence) => {
      const lease = new Lease(this, number, fence);
      this.#leases.set(number, lease);
      return lease;
    });
    const cancel = () => this.#event('rl_cancel', number);
    signal?.aborted ? cancel() : signal?.addEventListener('abort', cancel, { once: true });
    return promise;
  }

  release(lease) {
    const number = this.#event('rl_release', lease.number);
    return number === 0 ? Promise.resolve() : this.#started(number, () => {});
  }

  // Releases everything, and closes the connections.
  close() {
    if (this.#closed === null) {
      this.#closed = new Promise((resolve) => (this.#shut = resolve));
      this.#event('rl_shut_down');
    }
    return this.#closed;
  }

  async #ask() {
    try {
      const { user = '', password, validFor = -1 } = await this.#credentials();
      const size = this.#put(Buffer.from(user + password));
      this.#event('rl_give_credentials', Buffer.byteLength(user), size, BigInt(validFor));
    } catch (failure) {
      this.#event('rl_fail_credentials', this.#put(Buffer.from(`${failure.message}`)));
    }
  }

  get connectionCount() {
    return this.#wires.size;
  }

  // ---- into the module

  #put(bytes) {
    const at = this.#exports.rl_buffer(bytes.length);
    new Uint8Array(this.#memory.buffer).set(bytes, at);
    return bytes.length;
  }

  #check(status) {
    if (status !== 0) throw new Failure(status, this.#taken());
  }

  #taken() {
    return this.#text(this.#exports.rl_buffer(0), this.#exports.rl_text_size());
  }

  #bytes(at, size) {
    return Buffer.from(new Uint8Array(this.#memory.buffer, at, size));
  }

  #text(at, size) {
    return this.#bytes(at, size).toString();
  }

  // Call, and set the timer for what comes next.
  #event(name, ...args) {
    const result = this.#exports[name](...args, now());
    this.#arm();
    return result;
  }

  #started(number, result) {
    if (number <= 0) return Promise.reject(new Failure(number, this.#taken()));
    return new Promise((resolve, reject) => this.#settle(number, { resolve, reject, result }));
  }

  // A call may have finished before its number was known.
  #settle(number, { resolve, reject, result }) {
    const finish = (status, fence, message) =>
      status === 0 ? resolve(result(fence)) : reject(new Failure(status, message));
    const early = this.#calls.get(number);
    if (early === undefined) return void this.#calls.set(number, finish);
    this.#calls.delete(number);
    finish(...early);
  }

  #arm() {
    clearTimeout(this.#timer);
    const due = this.#exports.rl_next_due();
    const isBusy = this.#exports.rl_is_busy() === 1 || this.#closed !== null;
    for (const socket of this.#wires.values()) isBusy ? socket.ref() : socket.unref();
    if (due === NEVER) return;
    const delay = Math.ceil(Number(due - now()) / 1e6);
    const timer = () => this.#event('rl_time');
    this.#timer = setTimeout(timer, Math.min(Math.max(delay, 0), LONGEST_TIMER_MS));
    if (!isBusy) this.#timer.unref();
  }

  // ---- out of the module

  #imports(log) {
    const text = (at, size) => this.#text(at, size);
    const redlatch = {
      dial: (wire, host, hostSize, port, portSize) =>
        this.#dial(wire, text(host, hostSize), text(port, portSize)),
      close: (wire) => {
        this.#wires.get(wire)?.destroy();
        this.#wires.delete(wire);
      },
      send: (wire, at, size) => this.#wires.get(wire)?.write(this.#bytes(at, size)),
      finished: (call, status, fence, at, size) => {
        const result = [status, fence, text(at, size)];
        const finish = this.#calls.get(call);
        if (finish === undefined) return void this.#calls.set(call, result);
        this.#calls.delete(call);
        finish(...result);
      },
      ended: (number, state, at, size) => {
        const lease = this.#leases.get(number);
        this.#leases.delete(number);
        lease?.end(state, text(at, size));
      },
      ask: () => queueMicrotask(() => this.#ask()),
      shut: () => this.#shut(),
      log: (level, at, size) => log(LEVELS[level], text(at, size)),
      random: (at, size) =>
        void randomFillSync(new Uint8Array(this.#memory.buffer, at, size)),
      host_name: (at, size) => {
        const name = Buffer.from(os.hostname()).subarray(0, size);
        new Uint8Array(this.#memory.buffer).set(name, at);
        return name.length;
      },
      process_number: () => process.pid,
    };
    // The C library asks for more than is used.
    const refuse = (_, name) => () => {
      throw new Error(`the module calls ${name}`);
    };
    const env = { memory: this.#memory };
    return { env, redlatch, wasi_snapshot_preview1: new Proxy({}, { get: refuse }) };
  }

  #dial(wire, host, port) {
    const target = port === '' ? { path: host } : { host, port: Number(port), noDelay: true };
    const socket = net.connect(target);
    let isOpen = false;
    let failure = 'ECONNRESET';
    const when = (event, act) =>
      socket.on(event, (value) => {
        if (this.#wires.get(wire) === socket) act(value);
      });
    when('connect', () => {
      isOpen = true;
      this.#event('rl_dialled', wire);
    });
    when('data', (bytes) => this.#event('rl_bytes', wire, this.#put(bytes)));
    socket.on('error', (error) => (failure = error.code));
    when('close', () => {
      const [name, ...args] = isOpen
        ? ['rl_closed']
        : ['rl_dial_failed', this.#put(Buffer.from(failure))];
      this.#event(name, wire, ...args);
    });
    this.#wires.set(wire, socket);
  }
}

export class Lease {
  #ending = new AbortController();

  constructor(client, number, fence) {
    Object.assign(this, { client, number, fence });
  }

  // Aborted when the lease is lost.
  get signal() {
    return this.#ending.signal;
  }

  release() {
    return this.client.release(this);
  }

  end(state, reason) {
    if (state === LOST) this.#ending.abort(new Failure(-LOST, reason));
  }
}
