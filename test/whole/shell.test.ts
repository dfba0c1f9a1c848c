import { join } from "node:path";
import { Deadline, systemClock } from "@holdfast/async";
import { isSessionId } from "@holdfast/contract";
import type { Guest, SessionEvent } from "@holdfast/workspace";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { clientOf, guestProcess } from "../guest/guest-process.ts";
import { holdfast } from "./cli.ts";
import { dataFolder, startCluster, startServiceOn } from "./harness.ts";

const main = join(import.meta.dirname, "../../services/cli/src/main.ts");
const soon = () => new Deadline(systemClock, 60_000);

/** `holdfast` on a terminal of this machine, which an agent of our own makes. */
async function onTerminal(here: Guest, id: string, target: string, argv: readonly string[]) {
  if (!isSessionId(id)) throw new Error(id);
  await here.sessions.open(
    {
      sessionId: id,
      kind: "terminal",
      command: process.execPath,
      args: ["--disable-warning=ExperimentalWarning", main, ...argv],
      cwd: undefined,
      env: { HOLDFAST_SERVER: target, TERM: "vt100" },
      size: { columns: 100, rows: 30 },
      login: false,
      clientBound: false,
      expectedBootId: undefined,
    },
    soon(),
  );
  let text = "";
  let attached: Extract<SessionEvent, { t: "attached" }> | undefined;
  const waiting = new Set<() => void>();
  const wish = { sessionId: id, fromOffset: 0, size: undefined, attachmentId: undefined, expectedBootId: undefined };
  const exit = (async () => {
    for await (const event of here.sessions.attach({ ...wish, mode: "exclusive" }, new AbortController().signal)) {
      if (event.t === "attached") attached = event;
      if (event.t === "output") text += Buffer.from(event.data).toString("latin1");
      for (const wake of waiting) wake();
      waiting.clear();
      if (event.t === "exited") return event.exit.status;
    }
    return undefined;
  })();
  let sequence = 0;
  return {
    exit,
    get text() {
      return text;
    },
    async until(what: RegExp) {
      while (!what.test(text)) await new Promise<void>((resolve) => waiting.add(resolve));
    },
    async type(data: string) {
      if (attached === undefined) throw new Error("not attached");
      sequence += 1;
      const write = { sessionId: id, attachmentId: attached.attachmentId, sequence, data: Buffer.from(data) };
      await here.sessions.write(write, soon());
    },
    resize: (columns: number, rows: number) =>
      here.sessions.resize({ sessionId: id, size: { columns, rows }, attachmentId: undefined }, soon()),
  };
}

describe("holdfast sh", () => {
  let folder: Awaited<ReturnType<typeof dataFolder>>;
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let service: Awaited<ReturnType<typeof startServiceOn>>;

  beforeAll(async () => {
    folder = await dataFolder();
    cluster = await startCluster(folder.path);
    service = await startServiceOn(cluster.flags);
    await service.workspaces.openWorkspace({ workspaceId: "w" });
  });
  afterAll(async () => {
    await service.stop();
    await cluster[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  it("is a terminal of this one's size, in raw mode, that follows a resize, and exits as its program", async () => {
    const here = clientOf((await guestProcess()).address);
    const shell = await onTerminal(here, "a", service.target, ["sh", "w", "--", "sh", "-i"]);
    await shell.until(/\$ /);
    await shell.type("stty size; echo $TERM; sleep 100\r");
    await shell.until(/30 100\r\nvt100\r\n/);
    await shell.type("\x03"); // To the program there, not to this one.
    await shell.resize(81, 21);
    // What is typed may overtake a resize: here it is a signal to the client, and there it waits for no input.
    await shell.type('until [ "$(stty size)" = "21 81" ]; do sleep 0.05; done; stty size\r');
    await shell.until(/21 81\r\n/);
    await shell.type("exit 7\r");
    expect(await shell.exit).toEqual({ t: "code", code: 7 });
  });

  it("detaches by its key, is attached to by --session, goes on over a restart of the service, and is killed by name", async () => {
    const here = clientOf((await guestProcess()).address);
    const first = await onTerminal(here, "b", service.target, ["sh", "w", "--", "sh", "-i"]);
    await first.until(/\$ /);
    await first.type("echo fi''rst\r");
    await first.until(/first\r\n/);
    await first.type("\x1d");
    expect(await first.exit).toEqual({ t: "code", code: 0 });
    const session = /--session (sh-\w+)/.exec(first.text)?.[1] ?? "";
    expect((await holdfast(service.target, ["sessions", "w"])).stdout).toMatch(
      new RegExp(`${session} +terminal +runs +.*sh -i`),
    );
    const second = await onTerminal(here, "c", service.target, ["sh", "w", "--session", session]);
    await second.until(/first\r\n/);
    const port = service.target.split(":")[1];
    await service.kill();
    await second.type("echo mean''while\r");
    service = await startServiceOn([...cluster.flags, "--listen", `127.0.0.1:${port}`]);
    await second.until(/meanwhile\r\n/);
    expect(second.text.match(/meanwhile\r\n/g)).toHaveLength(1);
    const killed = await holdfast(service.target, ["kill-session", "w", session]);
    expect(killed).toMatchObject({ code: 0, stdout: `${session} ended by SIGKILL\n` });
    expect(await second.exit).toEqual({ t: "code", code: 137 });
  });

  it.each([
    ["a shell that reads lines", "exit 4", ["sh"], 4],
    ["a shell with a line editor", "exit 4", ["bash", "--norc"], 4],
    ["a shell that was not told to exit", "true\n", ["bash", "--norc"], 0],
    ["a shell that runs something meanwhile", "sleep 1; (exit 3)\n", ["bash", "--norc"], 3],
    [
      "several that read one after the other",
      "x",
      ["sh", "-c", "cat >one; cat >two; wc -c <one; wc -c <two; exit 6"],
      6,
    ],
    ["one that is given none", "", ["sh", "-c", "cat; exit 8"], 8],
  ])("ends the input of %s when what is piped ends, with or without a last newline", async (_, input, words, code) => {
    expect(await holdfast(service.target, ["sh", "w", "--", ...words], { input })).toMatchObject({ code });
  });

  it("gives who reads lines what was piped, and not a byte more", async () => {
    const words = ["sh", "-c", "stty -echo; echo ready; cat >piped; wc -c <piped"];
    const piped = await holdfast(service.target, ["sh", "w", "--", ...words], { input: "abc" });
    expect(piped).toMatchObject({ code: 0, stdout: expect.stringMatching(/ready\r\n3\r\n$/) });
  });

  it("types what comes by a pipe, and says by 125 that it could not", async () => {
    const piped = await holdfast(service.target, ["sh", "w", "--", "sh", "-c", "read -r x; echo got:$x; exit 5"], {
      input: "line\n",
    });
    expect(piped).toMatchObject({ code: 5, stdout: expect.stringContaining("got:line") });
    const failed = await holdfast(service.target, ["sh", "w", "--session", "never"]);
    expect(failed).toMatchObject({ code: 125, stderr: expect.stringContaining("SESSION_NOT_FOUND") });
  });
});
