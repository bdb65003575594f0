// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Cycles of the package redlock of Node, beside bench/quorum.cc. Takes `ports=` of the servers. For
// each number on standard input it does so many cycles, and prints one JSON object.
"use strict";

const readline = require("readline");
const { default: Redlock } = require("redlock");
const Redis = require("ioredis");

const given = Object.fromEntries(process.argv.slice(2).map((word) => word.split("=", 2)));

async function run(redlock, cycles) {
  const times = [];
  let failed = 0;
  for (let i = 0; i < cycles; i++) {
    const start = process.hrtime.bigint();
    try {
      const lock = await redlock.acquire(["quorum-peer"], 30000);
      await lock.release();
    } catch {
      failed++;
    }
    times.push(Number(process.hrtime.bigint() - start) / 1000);
  }
  times.sort((a, b) => a - b);
  return { p50_us: times[Math.floor(times.length / 2)], failed };
}

async function main() {
  const clients = given.ports.split(",").map((port) => {
    const client = new Redis(Number(port), "127.0.0.1");
    client.on("error", () => {}); // it connects again by itself
    return client;
  });
  const redlock = new Redlock(clients, { retryCount: 0 });
  redlock.on("error", () => {});
  for await (const line of readline.createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await run(redlock, Number(line))));
  }
  process.exit(0);
}

main();
