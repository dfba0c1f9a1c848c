import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isSessionId, type SessionId } from "@holdfast/contract";
import { describe, expect, it, onTestFinished } from "vitest";
import { SessionIds } from "./session-ids.ts";

const id = "shell" as SessionId;

/** The ids as each further agent process in the pod finds them. */
function processes(): (bootId: string) => SessionIds {
  const directory = mkdtempSync(join(tmpdir(), "session-ids-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  expect(isSessionId(id)).toBe(true);
  return (bootId) => new SessionIds(directory, bootId);
}

describe("the ids of sessions", () => {
  it("B32 a lost one stays lost when a new start under it comes to nothing, also for the process after", () => {
    const next = processes();
    next("first").remember(id);
    const second = next("second");
    const takeBack = second.remember(id);
    expect(second.lostWith(id)).toBeUndefined();
    takeBack();
    expect(second.lostWith(id)).toBe("first");
    expect(next("third").lostWith(id)).toBe("first");
  });

  it("one that was never started is not lost: its failed start is taken back", () => {
    const next = processes();
    next("first").remember(id)();
    expect(next("second").lostWith(id)).toBeUndefined();
  });
});
