import { execFileSync } from "node:child_process";
import { constants, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { loggerOn, openLog, partLogger } from "./logging.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "holdfast-log-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

describe("the log", () => {
  it("is whole once it is closed", async () => {
    const path = join(folder(), "log");
    const log = openLog("info", openSync(path, constants.O_CREAT | constants.O_WRONLY));
    for (let line = 0; line < 1_000; line++) log.logger.info({ line }, "hello");
    await log.close();
    expect(readFileSync(path, "utf8").split("\n")).toHaveLength(1_001);
  });

  it("ends nothing where it cannot be written, as on a full disk, and closes", async () => {
    const log = openLog("info", openSync("/dev/full", constants.O_WRONLY));
    log.logger.info("lost");
    await expect(log.close()).resolves.toBeUndefined();
  });

  it("closes although its reader stands still", async () => {
    const path = join(folder(), "pipe");
    execFileSync("mkfifo", [path]);
    const log = openLog("info", openSync(path, constants.O_RDWR | constants.O_NONBLOCK));
    for (let line = 0; line < 100; line++) log.logger.info("x".repeat(10_000));
    await expect(log.close()).resolves.toBeUndefined();
  });
});

describe("the log of a part", () => {
  it("cuts out what could carry a secret, wherever it stands", () => {
    const lines: string[] = [];
    const log = partLogger(loggerOn("info", { write: (line) => void lines.push(line) }), "kube");
    log.info(
      {
        token: "s3cret",
        guest: { podUid: "s3cret" },
        call: { wish: { env: { A: "s3cret" }, stdin: "s3cret" } },
        pod: "p",
      },
      "hello",
    );
    log.child({ more: 1 }).warn({ password: "s3cret" }, "again");
    expect(lines.join("")).not.toContain("s3cret");
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "info",
      part: "kube",
      pod: "p",
      token: "[redacted]",
      msg: "hello",
    });
  });
});
