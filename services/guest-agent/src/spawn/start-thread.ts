import { parentPort, workerData } from "node:worker_threads";
import { loadKoffi } from "../libc/koffi.ts";
import { PosixStart } from "./posix-start.ts";
import type { Answer, Order, Shared } from "./thread-spawner.ts";

// The thread in which programs are started, one after the other: it stands still while the kernel has not answered, and the event loop
// does not. What it starts is in shared memory before anything else can happen to it. (docs/decisions/0015-starts-in-a-thread.md)
const { memory }: Shared = workerData;
const koffi = loadKoffi();
if (parentPort === null || koffi === undefined) throw new Error("this is not the guest agent's thread for starts");
const port = parentPort;
const shared = new Int32Array(memory);
const start = new PosixStart(koffi, Buffer.from(memory, Int32Array.BYTES_PER_ELEMENT));

port.on("message", (order: Order) => port.postMessage(answerTo(order)));

function answerTo(order: Order): Answer {
  shared[1] = 0; // Before the order's number: a pid never stands beside another order's.
  shared[0] = order.number;
  try {
    return { number: order.number, pid: start.run(order.start) };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    return { number: order.number, code, message: error instanceof Error ? error.message : String(error) };
  }
}
