import { getEventListeners } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { ConnectResponseSchema } from "@holdfast/api/holdfast/guest/v1/port_pb";
import { AnsweredError } from "@holdfast/guest-link";
import { ManualClock, settleTasks } from "@holdfast/testkit";
import { GuestLost, type PortWish } from "@holdfast/workspace";
import { describe, expect, it } from "vitest";
import { connectPort } from "./linked-tunnel.ts";
import { type Opened, ScriptedLink } from "./scripted-link.testing.ts";

const wish = { port: 8_000 } as PortWish;
const say = ({ listener }: Opened, event: "connected" | "closed"): void => {
  const message = create(ConnectResponseSchema, {
    event: { case: event, value: {} } as { case: "connected"; value: object },
  });
  listener.message(Buffer.from(toBinary(ConnectResponseSchema, message)));
};

/** A tunnel that stands. */
async function standing(onOpen: (opened: Opened) => void = () => undefined) {
  const scripted = new ScriptedLink();
  const caller = new AbortController();
  scripted.onOpen = (opened) => {
    say(opened, "connected");
    onOpen(opened);
  };
  const tunnel = await connectPort(scripted.link, new ManualClock(), wish, caller.signal);
  tunnel.ended.catch(() => undefined);
  const [opened] = scripted.opened;
  if (opened === undefined) return expect.unreachable();
  return { tunnel, opened, caller };
}

const received = async (tunnel: { readonly received: AsyncIterable<Uint8Array> }): Promise<string> => {
  let text = "";
  for await (const bytes of tunnel.received) text += Buffer.from(bytes).toString();
  return text;
};

describe("B67 a tunnel", () => {
  it("ends each way by itself, and as a whole only when the guest has said so of both", async () => {
    const { tunnel, opened, caller } = await standing();
    opened.listener.data(Buffer.from("abc"));
    say(opened, "closed");
    expect(await received(tunnel)).toBe("abc");
    await tunnel.send(Buffer.from("x"));
    tunnel.closeSending();
    tunnel.closeSending();
    await expect(tunnel.send(Buffer.from("y"))).rejects.toThrow("sending was closed");
    expect(opened.sent).toEqual([Buffer.from("x"), "eof"]);
    opened.listener.over(undefined);
    await tunnel.ended;
    await settleTasks();
    expect(getEventListeners(caller.signal, "abort")).toEqual([]);
  });

  it("that is called complete while the other side's end was not told is lost", async () => {
    const { tunnel, opened } = await standing();
    opened.listener.data(Buffer.from("abc"));
    opened.listener.over(undefined);
    await expect(received(tunnel)).rejects.toBeInstanceOf(GuestLost);
    await expect(tunnel.ended).rejects.toBeInstanceOf(GuestLost);
  });

  it("G5 holds back a guest whose bytes are not read, and waits for one that does not read", async () => {
    const { tunnel, opened } = await standing(({ listener }) => listener.data(Buffer.alloc(1024 * 1024)));
    expect(opened.asked).toEqual(["pause"]);
    opened.takes = false;
    let sent = false;
    const sending = tunnel.send(Buffer.from("x")).then(() => {
      sent = true;
    });
    await settleTasks();
    expect(sent).toBe(false);
    opened.drained.resolve();
    await sending;
  });

  it("G5a that the guest ends by force is told at once to whoever watches it, though nobody reads", async () => {
    const { tunnel, opened } = await standing();
    opened.listener.ending?.(new AnsweredError("HOLDER_EPOCH_SUPERSEDED", "another"));
    await expect(tunnel.ended).rejects.toMatchObject({ reason: "HOLDER_EPOCH_SUPERSEDED" });
  });

  it("whose caller went as it came to stand is ended, and says so", async () => {
    const gone = new Error("gone");
    const scripted = new ScriptedLink();
    const caller = new AbortController();
    scripted.onOpen = (opened) => {
      say(opened, "connected");
      caller.abort(gone);
    };
    const tunnel = await connectPort(scripted.link, new ManualClock(), wish, caller.signal);
    await expect(tunnel.ended).rejects.toBe(gone);
    expect(scripted.opened[0]?.ended[0]).toEqual({ clientClosed: true });
  });

  it("ends with its caller, who says so to the guest", async () => {
    const { tunnel, opened, caller } = await standing();
    const gone = new Error("gone");
    caller.abort(gone);
    await expect(received(tunnel)).rejects.toBe(gone);
    await expect(tunnel.ended).rejects.toBe(gone);
    expect(opened.ended[0]).toEqual({ clientClosed: true });
  });
});
