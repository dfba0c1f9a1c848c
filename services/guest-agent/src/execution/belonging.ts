import { PidLaps } from "./pid-laps.ts";
import { nowTicks, readProcess } from "./processes.ts";

/** The processes of one command. */
export interface Belonging {
  /** The leader's pid, which is also its kernel session and process group. */
  readonly leader: number;
  readonly leaderStartTicks: number;
  /** In which the leader's pid was given out. */
  readonly pidLap: number;
  /** An environment entry that only this command's processes inherit, `NAME=value`. */
  readonly marker: string;
  /**
   * When the leader had exited, in the ticks of `startTicks`; undefined while it runs. From then on its number is free once its
   * session is empty. Set once, by whoever saw the exit.
   */
  leaderGoneTicks?: number;
}

/** Shared: the pids of all programs come from one count. */
export const pidLaps = new PidLaps();

/** What is known of a command whose leader was started just now. */
export function belongingOf(leader: number, marker: string): Belonging {
  return { leader, leaderStartTicks: startTicksOf(leader), pidLap: pidLaps.see(leader), marker };
}

/** Its leader has exited just now. */
export function leaderGone(command: Belonging): void {
  try {
    command.leaderGoneTicks = nowTicks();
  } catch {
    command.leaderGoneTicks = 0; // No descriptor to read the time by: the session alone proves nothing any more.
  }
}

/** 0 where it cannot be read: then the number alone proves nothing, and what is the program's is known by its marker. */
function startTicksOf(pid: number): number {
  try {
    return readProcess(pid)?.startTicks ?? 0;
  } catch {
    return 0; // The program runs: for want of a descriptor to look at it, it is not called unstarted.
  }
}
