import { describe, expect, it } from "vitest";
import { loggerOn, partLogger } from "./logging.ts";

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
