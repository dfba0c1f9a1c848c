import { type Belonging, pidLaps } from "./belonging.ts";
import { Looks } from "./looks.ts";
import { ProcessView } from "./process-view.ts";
import { isGone, type Process } from "./processes.ts";

/** Looking at more pids than this one by one costs more than listing those there are. */
const directLooksMax = 32;

/** Shared: whoever asks at the same moment looks at the machine together. */
const looks = new Looks(() => new ProcessView());

/**
 * Everything of a command that still lives, looked for after this was asked (rejects where that cannot be known): its kernel session, what left
 * the session but carries the marker, and what descends from either. A process that left the session, lost its parent and cleared its
 * environment is not found.
 */
export function membersOf(command: Belonging): Promise<readonly Process[]> {
  return looks.ask((view) => membersAmong(view.pids, view, command));
}

/**
 * The same at the cost of what was started since the leader, instead of a look at everything on the machine, which a command's end must
 * not cost: for what is told, not for what is confirmed. In a storm of forks that fail, pids can go round unseen.
 */
export function recentMembersOf(command: Belonging): Promise<readonly Process[]> {
  return looks.ask((view) => membersAmong(pidsSince(command, view), view, command));
}

function pidsSince({ leader, pidLap }: Belonging, view: ProcessView): readonly number[] {
  const last = view.lastPid;
  if (pidLaps.see(last) !== pidLap) return view.pids;
  const count = last - leader + 1;
  if (count <= directLooksMax) return Array.from({ length: count }, (_, at) => leader + at);
  return view.pids.filter((pid) => pid >= leader && pid <= last);
}

function membersAmong(pids: readonly number[], view: ProcessView, command: Belonging): Process[] {
  const { leader, leaderStartTicks, leaderGoneTicks } = command;
  const candidates: Process[] = [];
  let reused = false;
  // A session's number is not given again while it has members. Without one from the leader's time, it may be a stranger's.
  let continued = leaderGoneTicks === undefined;
  for (const pid of pids) {
    if (pid <= 1 || pid === process.pid) continue;
    const found = view.process(pid);
    if (found === undefined || found.startTicks < leaderStartTicks) continue;
    if (pid === leader && found.startTicks !== leaderStartTicks) reused = true;
    // Started in the very tick of the leader's end counts too: the pids cannot have gone round within it.
    if (leaderGoneTicks !== undefined && found.session === leader && found.startTicks <= leaderGoneTicks)
      continued = true;
    if (!isGone(found)) candidates.push(found);
  }
  const members = new Map<number, Process>();
  for (const candidate of candidates) {
    const inSession = continued && !reused && candidate.session === leader;
    if (inSession || view.hasMarker(candidate.pid, command.marker)) members.set(candidate.pid, candidate);
  }
  for (let before = -1; before !== members.size; ) {
    before = members.size;
    for (const candidate of candidates) if (members.has(candidate.parent)) members.set(candidate.pid, candidate);
  }
  return [...members.values()];
}
