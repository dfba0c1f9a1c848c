const unitMs: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 0.001, n: 0.000_001 };
const longestTimerMs = 2 ** 31 - 1;
/** The most digits of a timeout in gRPC; connect-node's clients write more for those beyond 27 hours. */
const digitsMax = 8;

/**
 * Libraries give deadlines to Node's timers, which fire at once for one beyond 2^31 ms (24.8 days): it is shortened to that. One with
 * more digits than gRPC has is written in seconds.
 */
export function shortenTimeout(headers: Record<string, unknown>): void {
  const match = /^(\d{1,16})([HMSmun])$/.exec(String(headers["grpc-timeout"] ?? ""));
  const digits = match?.[1] ?? "";
  const ms = Number(digits) * (unitMs[match?.[2] ?? ""] ?? 0);
  if (ms > longestTimerMs || digits.length > digitsMax) {
    headers["grpc-timeout"] = `${Math.floor(Math.min(ms, longestTimerMs) / 1000)}S`;
  }
  const connect = headers["connect-timeout-ms"];
  if (typeof connect === "string" && /^\d{1,10}$/.test(connect) && Number(connect) > longestTimerMs) {
    headers["connect-timeout-ms"] = String(longestTimerMs);
  }
}
