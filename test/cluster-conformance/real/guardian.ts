// Ends whatever carries a run's mark in its environment and removes its folder, once that run is over in whatever way: a service that a
// test had started lives on when the test is killed, and a run that was killed ends nobody. Standard input is the run's life.
import { once } from "node:events";
import { readdir, readFile, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { runMark } from "./run-mark.ts";

const [mark = "", folder = ""] = process.argv.slice(2);
const rounds = 50;
const betweenRoundsMs = 100;

process.stdin.resume();
await once(process.stdin, "end");
for (let round = 0; round < rounds; round++) {
  const left = await carriersOf(`${runMark}=${mark}\0`);
  if (left.length === 0) break;
  for (const pid of left) endNow(pid);
  await delay(betweenRoundsMs);
}
if (folder !== "") await rm(folder, { recursive: true, force: true, maxRetries: 10 });

async function carriersOf(text: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const carries = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => ""); // gone, or not ours
      return pid !== process.pid && `${environment}\0`.includes(text);
    }),
  );
  return pids.filter((_, at) => carries[at]);
}

function endNow(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
  }
}
