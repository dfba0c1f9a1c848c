import { describe, expect, it } from "vitest";
import { apiAnswerOf, retryAfterHeaderMs, saysAbsent, wordsOf } from "./api-answer.ts";

const nowMs = Date.UTC(2026, 0, 1);
const answer = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  apiAnswerOf(status, headers, typeof body === "string" ? body : JSON.stringify(body), nowMs);
const notFound = { kind: "Status", reason: "NotFound", details: { name: "one" } };

describe("L24 an answer says of an object that it is absent", () => {
  it.each([
    ["404 with a Status that names it", 404, notFound, true],
    ["410 with a Status that names it as gone", 410, { ...notFound, reason: "Gone" }, true],
    ["404 about another", 404, { ...notFound, details: { name: "two" } }, false],
    ["404 for another reason", 404, { ...notFound, reason: "Whatever" }, false],
    ["404 in the same words, though no Status", 404, { ...notFound, kind: "Page" }, false],
    ["a 403 in the same words", 403, notFound, false],
    ["a 200 in the same words", 200, notFound, false],
    ["a proxy's page", 404, "<html>not found</html>", false],
  ] as const)("by %s", (_what, status, body, absent) => {
    expect(saysAbsent(answer(status, body), "one")).toBe(absent);
  });
});

describe("how long a server asks to be left alone", () => {
  it.each([
    ["in seconds", "3", 3_000],
    ["until a date", new Date(nowMs + 5_000).toUTCString(), 5_000],
    ["until a date that is over", new Date(nowMs - 5_000).toUTCString(), 0],
    ["in words that mean nothing", "soon", undefined],
    ["in more digits than a time has", "1234567890123", undefined],
  ])("is read from its header: %s", (_how, value, ms) => {
    expect(retryAfterHeaderMs(value, nowMs)).toBe(ms);
  });

  it("is read from its Status where there is no header to be read", () => {
    const body = (seconds: unknown) => ({ kind: "Status", details: { retryAfterSeconds: seconds } });
    expect(answer(429, body(7)).retryAfterMs).toBe(7_000);
    expect(answer(429, body(7), { "retry-after": "2" }).retryAfterMs).toBe(2_000);
    expect(answer(429, body(7), { "retry-after": "soon" }).retryAfterMs).toBe(7_000);
    for (const odd of [-1, 1.5, "7", undefined]) expect(answer(429, body(odd)).retryAfterMs).toBeUndefined();
  });
});

describe("the words of an answer", () => {
  it("are the beginning of what came, however long that is", () => {
    expect(wordsOf(answer(500, "x".repeat(5_000)))).toBe(`${"x".repeat(1_000)}…`);
    expect(wordsOf(answer(500, " \n"))).toBe("no explanation");
  });
});
