const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
const longestTimerMs = 2 ** 31 - 1;

/** Libraries give deadlines to Node's timers, which take one beyond 2^31 ms (24.8 days) as none at all and fire at once: it is shortened to that. */
export function shortenTimeout(headers: Record<string, unknown>): void {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(headers["grpc-timeout"] ?? ""));
  const ms = Number(match?.[1]) * (unitMs[match?.[2] ?? ""] ?? 0);
  if (ms > longestTimerMs) headers["grpc-timeout"] = `${Math.floor(longestTimerMs / 1000)}S`;
  const connect = headers["connect-timeout-ms"];
  if (typeof connect === "string" && /^\d{1,10}$/.test(connect) && Number(connect) > longestTimerMs) {
    headers["connect-timeout-ms"] = String(longestTimerMs);
  }
}
