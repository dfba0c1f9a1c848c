import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { eventually } from "../testing/agent-process.testing.ts";
import { type Belonging, belongingOf } from "./belonging.ts";
import { membersOf, recentMembersOf } from "./members.ts";
import { isGone, nowTicks, type Process, readProcess, signalProcess } from "./processes.ts";

const marker = "HOLDFAST_EXECUTION=processes.test/1";

/** A shell as the leader of a session of its own. */
function leader(text: string): Belonging {
  const child = spawn("sh", ["-c", text], {
    detached: true,
    stdio: "ignore",
    env: { ...process.env, HOLDFAST_EXECUTION: marker.split("=")[1] },
  });
  const command = belongingOf(child.pid ?? 0, marker);
  endsWithTest(command);
  return command;
}

function endsWithTest(command: Belonging): void {
  onTestFinished(async () => {
    for (const member of await membersOf(command)) signalProcess(member, "SIGKILL");
  });
}

const isLater =
  (command: Belonging) =>
  ({ startTicks }: Process): boolean =>
    startTicks > (command.leaderGoneTicks ?? Number.POSITIVE_INFINITY);

const namesOf = async (command: Belonging, look = membersOf): Promise<string[]> =>
  (await look(command)).map(({ name }) => name).sort();

describe("the processes of a command", () => {
  it("are its session, what left it with the marker, and what descends from either", async () => {
    const command = leader("sleep 301 & setsid sleep 302 & env -i setsid sleep 303 & sleep 304");
    await eventually(async () => (await namesOf(command)).filter((name) => name === "sleep").length === 4);
    const foreign = spawn("sleep", ["305"], { detached: true, stdio: "ignore" });
    onTestFinished(() => void foreign.kill("SIGKILL"));
    expect((await membersOf(command)).some(({ pid }) => pid === foreign.pid)).toBe(false);
    expect(await namesOf(command, recentMembersOf)).toEqual(await namesOf(command));
    expect(await namesOf({ ...command, pidLap: -1 }, recentMembersOf)).toEqual(await namesOf(command));
  });

  it("G9 are looked for once for all who ask at the same moment, and anew for who asks later", async () => {
    const command = leader("exec sleep 301");
    // The object tells whether it was read once.
    const seen = () => Promise.all(Array.from({ length: 8 }, async () => (await membersOf(command))[0] ?? fail()));
    const [first, ...others] = await seen();
    expect(others.every((other) => other === first)).toBe(true);
    const [later] = await seen();
    expect(later).toMatchObject({ pid: command.leader });
    expect(later).not.toBe(first);
  });

  it("are not those of a later session under the same number", async () => {
    const command = leader("sleep 301 & sleep 302");
    await eventually(async () => (await namesOf(command)).filter((name) => name === "sleep").length === 2);
    const earlier = {
      ...command,
      leaderStartTicks: command.leaderStartTicks - 100,
      marker: "HOLDFAST_EXECUTION=earlier",
    };
    expect(await membersOf(earlier)).toEqual([]);
  });

  it("are not what a stranger's daemon left in a later session under the same number", async () => {
    const daemon = spawn("sh", ["-c", "sleep 303 & exit 0"], { detached: true, stdio: "ignore" });
    const leader = daemon.pid ?? 0;
    const leaderStartTicks = readProcess(leader)?.startTicks ?? 0;
    const theirs = belongingOf(leader, "HOLDFAST_EXECUTION=stranger");
    await new Promise((resolve) => daemon.once("exit", resolve));
    endsWithTest(theirs);
    await eventually(async () => (await namesOf(theirs)).includes("sleep"));
    const earlier = {
      ...theirs,
      leaderStartTicks: leaderStartTicks - 200,
      leaderGoneTicks: leaderStartTicks - 100,
      marker: "HOLDFAST_EXECUTION=earlier",
    };
    expect(await membersOf(earlier)).toEqual([]);
  });

  it("are still its session's when the leader has gone, also those without the marker that began later", async () => {
    const command = leader("env -i sh -c 'sleep 0.2; sleep 301; true' & sleep 0.05");
    await eventually(() => isGone(readProcess(command.leader)));
    command.leaderGoneTicks = nowTicks();
    await eventually(async () => {
      const members = await membersOf(command);
      return members.length === 2 && (await namesOf(command)).join() === "sh,sleep" && members.some(isLater(command));
    });
  });

  it("are its session's too when they began in the very tick in which the leader went", async () => {
    const command = leader("env -i sleep 304 & sleep 0.05");
    await eventually(async () => isGone(readProcess(command.leader)) && (await namesOf(command)).join() === "sleep");
    command.leaderGoneTicks = (await membersOf(command))[0]?.startTicks ?? 0;
    expect(await namesOf(command)).toEqual(["sleep"]);
  });

  it("do not count when they are zombies", async () => {
    const command = leader("exit 0");
    await eventually(async () => (await membersOf(command)).length === 0);
    expect(isGone(undefined)).toBe(true);
    expect(isGone({ ...(readProcess(process.pid) ?? fail()), state: "Z" })).toBe(true);
    expect(isGone(readProcess(process.pid))).toBe(false);
  });

  it("are read whatever their name holds", async () => {
    onTestFinished(() => rmSync("/tmp/h) S 1 (f", { force: true }));
    const command = leader("cp $(command -v sleep) '/tmp/h) S 1 (f' && exec '/tmp/h) S 1 (f' 301");
    await eventually(async () => (await namesOf(command)).includes("h) S 1 (f"));
    expect(readProcess(command.leader)).toMatchObject({ session: command.leader, parent: process.pid });
  });

  it("are signalled only while the pid is still theirs", async () => {
    const command = leader("exec sleep 301");
    const seen = readProcess(command.leader) ?? fail();
    signalProcess({ ...seen, startTicks: seen.startTicks - 1 }, "SIGKILL");
    expect(isGone(readProcess(command.leader))).toBe(false);
    signalProcess(seen, "SIGKILL");
    await eventually(() => isGone(readProcess(command.leader)));
  });
});

function fail(): never {
  throw new Error("no such process");
}
