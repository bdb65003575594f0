// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The shell of the module in Node: sockets, a timer, a clock, random bytes. It decides nothing
// about locks. It is for the trial: a product would need a clock that counts suspend. Each client
// has an instance of its own.
//
//     const client = await Client.open('redis://localhost');
//     const lease = await client.lock('orders', { ttl: 30_000, wait: 5_000, signal });
//     lease.fence, lease.signal, await lease.release();
//     await client.close();

import fs from 'node:fs';
import net from 'node:net';
import { randomFillSync } from 'node:crypto';

const FILE = new URL('./redlatch.wasm', import.meta.url);
const LOST = 3; // a state of a lease
const PAGE = 65_536; // the buffer of the module has this size
const INITIAL_PAGES = 32; // INITIAL_BYTES of build.py
const DEFAULT_LIMIT = 256 * 1024 * 1024;
const LONGEST_TIMER_MS = 60_000;
const NEVER = 2n ** 63n - 1n;
const LEVELS = ['', 'error', 'warning', 'info'];

const now = () => process.hrtime.bigint();
const texts = (options) => Object.entries(options).map(([name, value]) => `${name}=${value}`);

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
  #calls = new Map(); // takes the result, by the number of the call
  #leases = new Map(); // by the number of the call that acquires it
  #lastCall = 0;
  #timer;
  #shut;

  // `options`: of docs/options.md. `log`: takes level and text of background events. `credentials`:
  // gives { user, password } when they are needed. `memoryLimit`: in bytes; calls that find no
  // memory fail.
  static async open(url, { options = {}, log = () => {}, credentials,
    memoryLimit = DEFAULT_LIMIT } = {}) {
    compiled ??= WebAssembly.compile(fs.readFileSync(FILE));
    const client = new Client();
    const maximum = Math.floor(memoryLimit / PAGE);
    client.#memory = new WebAssembly.Memory({ initial: INITIAL_PAGES, maximum });
    const imports = client.#imports(log, credentials);
    client.#exports = (await WebAssembly.instantiate(await compiled, imports)).exports;
    client.#exports._initialize();
    const size = client.#put(url, ...texts(options));
    await client.#call('rl_open', size, credentials === undefined ? 0 : 1);
    return client;
  }

  // `wait`: in milliseconds; -1: without limit; 0: one try. `options`: of docs/options.md.
  async lock(name, { ttl = 30_000, wait = -1, signal, options = {} } = {}) {
    const size = this.#put(name, ...texts(options));
    const result = this.#call('rl_acquire', size, BigInt(ttl), BigInt(wait));
    const number = this.#lastCall;
    const lease = new Lease(this, number);
    this.#leases.set(number, lease);
    const cancel = () => this.#event('rl_cancel', number);
    if (signal?.aborted) cancel();
    signal?.addEventListener('abort', cancel, { once: true });
    try {
      lease.fence = await result;
      return lease;
    } catch (failure) {
      this.#leases.delete(number);
      throw failure;
    } finally {
      signal?.removeEventListener('abort', cancel);
    }
  }

  release(lease) {
    return this.#call('rl_release', lease.number);
  }

  // Once. Releases everything, and closes the connections.
  close() {
    return new Promise((resolve) => {
      this.#shut = resolve;
      this.#event('rl_shut_down');
    });
  }

  get connectionCount() {
    return this.#wires.size;
  }

  // ---- into the module

  #putBytes(bytes) {
    new Uint8Array(this.#memory.buffer, this.#exports.rl_buffer(), PAGE).set(bytes);
    return bytes.length;
  }

  #put(...words) {
    return this.#putBytes(Buffer.from(words.map((word) => `${word}\0`).join('')));
  }

  // Call, and set the timer for what comes next.
  #event(name, ...args) {
    this.#exports[name](...args, now());
    clearTimeout(this.#timer);
    const due = this.#exports.rl_next_due();
    if (due === NEVER) return;
    const delay = Math.max(Math.ceil(Number(due - now()) / 1e6), 0);
    this.#timer = setTimeout(() => this.#event('rl_time'), Math.min(delay, LONGEST_TIMER_MS));
  }

  // @return the fence, if it acquires a lease.
  #call(name, ...args) {
    const number = ++this.#lastCall;
    return new Promise((resolve, reject) => {
      this.#calls.set(number, (status, fence, message) => {
        status === 0 ? resolve(fence) : reject(new Failure(status, message));
      });
      this.#event(name, number, ...args);
    });
  }

  // ---- out of the module

  #bytes(at, size) {
    return Buffer.from(new Uint8Array(this.#memory.buffer, at, size)); // a copy
  }

  #imports(log, credentials) {
    const text = (at, size) => this.#bytes(at, size).toString();
    const taken = (map, number) => {
      const value = map.get(number);
      map.delete(number);
      return value;
    };
    const ask = async () => {
      const { user = '', password } = await credentials();
      this.#event('rl_give_credentials', this.#put(user, password));
    };
    const redlatch = {
      dial: (wire, host, hostSize, port, portSize) =>
        this.#dial(wire, text(host, hostSize), text(port, portSize)),
      close: (wire) => taken(this.#wires, wire)?.destroy(),
      send: (wire, at, size) => this.#wires.get(wire)?.write(this.#bytes(at, size)),
      finished: (call, status, fence, at, size) =>
        taken(this.#calls, call)(status, fence, text(at, size)),
      ended: (number, state, at, size) =>
        taken(this.#leases, number)?.end(state, text(at, size)),
      ask: () => queueMicrotask(ask),
      shut: () => this.#shut(),
      log: (level, at, size) => log(LEVELS[level], text(at, size)),
      random: (at, size) => void randomFillSync(new Uint8Array(this.#memory.buffer, at, size)),
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
    let reason = '';
    const when = (event, act) =>
      socket.on(event, (value) => {
        if (this.#wires.get(wire) === socket) act(value);
      });
    when('connect', () => this.#event('rl_dialled', wire));
    when('data', (bytes) => {
      for (let at = 0; at < bytes.length; at += PAGE) {
        this.#event('rl_bytes', wire, this.#putBytes(bytes.subarray(at, at + PAGE)));
      }
    });
    socket.on('error', (error) => (reason = error.code));
    when('close', () => this.#event('rl_closed', wire, this.#putBytes(Buffer.from(reason))));
    this.#wires.set(wire, socket);
  }
}

export class Lease {
  #ending = new AbortController();

  constructor(client, number) {
    Object.assign(this, { client, number });
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
