import type { FramedSocket } from "./framed-socket.ts";

/** A socket of which the test is the other end: what is sent stays here, and nothing comes but what the test hands to its listener. */
export class FakeSocket {
  readonly sent: { readonly type: number; readonly payload: Buffer; readonly callId: number }[] = [];
  /** "pause", "resume", "finish" and "destroy", in order. */
  readonly asked: string[] = [];
  cause: unknown;
  isClosed = false;
  isBlocked = false;
  bytesWaiting = 0;

  send(type: number, payload: Uint8Array, callId = 0): boolean {
    this.sent.push({ type, payload: Buffer.from(payload), callId });
    return !this.isBlocked;
  }
  drained = (): Promise<void> => Promise.resolve();
  pause = (): void => void this.asked.push("pause");
  resume = (): void => void this.asked.push("resume");
  finish = (): void => void this.asked.push("finish");
  destroy = (cause?: unknown): void => {
    this.cause ??= cause;
    this.asked.push("destroy");
  };

  /** The types of what was sent, in order. */
  get types(): readonly number[] {
    return this.sent.map(({ type }) => type);
  }

  get framed(): FramedSocket {
    return this as unknown as FramedSocket;
  }
}
