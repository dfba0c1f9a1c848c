/** Milliseconds as a protobuf Duration. */
export function durationOf(ms: number): { readonly seconds: bigint; readonly nanos: number } {
  const whole = Math.floor(ms / 1000);
  return { seconds: BigInt(whole), nanos: Math.floor((ms - whole * 1000) * 1_000_000) };
}
