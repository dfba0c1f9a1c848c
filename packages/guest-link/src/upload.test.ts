import { ExecutionService } from "@holdfast/api/holdfast/guest/v1/execution_pb";
import { FileService } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { Deadline, systemClock } from "@holdfast/async";
import { describe, expect, it, onTestFinished } from "vitest";
import { LinkClient } from "./link-client.ts";
import { AnsweredError, LinkLost } from "./link-errors.ts";
import { LinkServer } from "./link-server.ts";
import { eventually, host, listening, token } from "./loopback.testing.ts";
import { type CallContext, Router } from "./router.ts";
import type { CallerStream } from "./stream-caller.ts";
import { Upload } from "./upload.ts";

const { write } = FileService.method;
const soon = () => new Deadline(systemClock, 5_000);

/** A server with one upload, and a stream to it that is open. */
async function uploading(handle: (upload: Upload, context: CallContext) => Promise<void>) {
  const router = new Router().upload(write, async (request, upload, context) => {
    await handle(upload, context);
    return { file: { path: request.path } };
  });
  const server = new LinkServer({ token, bootId: "boot-1", features: [] }, router, systemClock);
  const port = await server.listen(host, 0);
  const client = new LinkClient({ host, port, token }, systemClock);
  onTestFinished(() => {
    client.close();
    server.close();
  });
  const over = Promise.withResolvers<Error | undefined>();
  let answers = 0;
  const listener = {
    message: () => {
      answers += 1;
    },
    data: () => undefined,
    over: over.resolve,
  };
  const stream = await client.open(write, { path: "p" }, listener, { within: soon() });
  return { stream, over: over.promise, answers: () => answers };
}

/** Sends at the pace that the other side sets, until told to stop. */
async function send(stream: CallerStream, piece: Buffer, goesOn: () => boolean): Promise<number> {
  let sent = 0;
  while (goesOn()) {
    sent += piece.length;
    if (!stream.sendData(piece)) await stream.drained();
  }
  return sent;
}

describe("an upload", () => {
  it("to an agent that does not know the method is answered so, with its bytes in the same packet", async () => {
    const server = new LinkServer({ token, bootId: "boot-1", features: [] }, new Router(), systemClock);
    const port = await server.listen(host, 0);
    const client = new LinkClient({ host, port, token }, systemClock);
    onTestFinished(() => {
      client.close();
      server.close();
    });
    const over = Promise.withResolvers<Error | undefined>();
    const listener = { message: () => undefined, data: () => undefined, over: over.resolve };
    await client.open(write, { path: "p" }, listener, { within: soon() }).then((stream) => {
      stream.sendData(Buffer.alloc(1_000));
      stream.sendEof();
    });
    expect(await over.promise).toMatchObject({ reason: "GUEST_FEATURE_MISSING" });
  });

  it("brings every byte in order, then EOF, whatever the pieces, also those sent together with OPEN", async () => {
    const got: Buffer[] = [];
    const { stream, over, answers } = await uploading(async (upload) => {
      for (let parts = await upload.read(); parts; parts = await upload.read()) got.push(...parts);
    });
    const pieces = [1, 0, 65_535, 65_536, 65_537, 200_000].map((size, at) => Buffer.alloc(size, at + 1));
    for (const piece of pieces) if (!stream.sendData(piece)) await stream.drained();
    stream.sendEof();
    expect(await over).toBeUndefined();
    expect(answers()).toBe(1);
    expect(Buffer.concat(got).equals(Buffer.concat(pieces))).toBe(true);
  });

  it("G5 holds its sender back while nobody reads, and goes on when somebody does", async () => {
    const begin = Promise.withResolvers<void>();
    let read = 0;
    const { stream, over } = await uploading(async (upload) => {
      await begin.promise;
      for (let parts = await upload.read(); parts; parts = await upload.read()) {
        for (const part of parts) read += part.length;
      }
    });
    let left = 64 * 1024 * 1024;
    let sent = 0;
    const sending = send(stream, Buffer.alloc(65_536), () => {
      sent = 64 * 1024 * 1024 - left;
      left -= 65_536;
      return left >= 0;
    });
    let last = -1;
    await eventually(() => {
      const stands = sent === last;
      last = sent;
      return stands && sent > 0;
    });
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    begin.resolve();
    await sending;
    stream.sendEof();
    expect(await over).toBeUndefined();
    expect(read).toBe(64 * 1024 * 1024);
  });

  it("that is answered early ends with that answer, though its sender goes on sending", async () => {
    const { stream, over } = await uploading(async (upload) => {
      await upload.read();
      throw new AnsweredError("DISK_FULL", "full");
    });
    let ended = false;
    void over.then(() => {
      ended = true;
    });
    await send(stream, Buffer.alloc(65_536), () => !ended).catch((error) => expect(error).toBeInstanceOf(LinkLost));
    expect(await over).toMatchObject({ reason: "DISK_FULL" });
  });

  it("without EOF is never taken for whole: the caller's end and a cut connection fail the read and abort the work", async () => {
    for (const end of [
      (stream: CallerStream) => stream.end({ clientClosed: true }),
      (stream: CallerStream) => stream.destroy(new Error("cut by the test")),
    ]) {
      const failed = Promise.withResolvers<unknown>();
      const begun = Promise.withResolvers<void>();
      let signal: AbortSignal | undefined;
      const { stream } = await uploading(async (upload, context) => {
        signal = context.signal;
        try {
          for (let parts = await upload.read(); parts; parts = await upload.read()) begun.resolve();
          failed.resolve("it was taken for whole");
        } catch (error) {
          failed.resolve(error);
          throw error;
        }
      });
      stream.sendData(Buffer.alloc(100_000));
      await begun.promise;
      end(stream);
      expect(await failed.promise).toBeInstanceOf(LinkLost);
      expect(signal?.aborted).toBe(true);
    }
  });

  it("to a method that takes no bytes breaks the protocol and ends that connection alone", async () => {
    using agent = await listening(() => new Promise(() => undefined));
    const client = new LinkClient(agent.target, systemClock);
    onTestFinished(() => client.close());
    const over = Promise.withResolvers<Error | undefined>();
    const listener = { message: () => undefined, data: () => undefined, over: over.resolve };
    const method = ExecutionService.method.followExecution;
    const stream = await client.open(method, {}, listener, { within: soon() });
    stream.sendData(Buffer.from("not wanted"));
    expect(await over.promise).toBeInstanceOf(LinkLost);
  });
});

describe("G5 the bytes of an upload that wait for their reader", () => {
  const kib = (count: number): Buffer => Buffer.alloc(count * 1024);
  function waiting() {
    const asked: string[] = [];
    const upload = new Upload({ pause: () => void asked.push("pause"), resume: () => void asked.push("resume") });
    return { asked, upload };
  }

  it("hold the sender back at 512 KiB, once, and let it go on when they are read", async () => {
    const { asked, upload } = waiting();
    upload.push(kib(511));
    expect(asked).toEqual([]);
    upload.push(kib(1));
    upload.push(kib(1));
    expect(asked).toEqual(["pause"]);
    expect(await upload.read()).toHaveLength(3);
    expect(asked).toEqual(["pause", "resume"]);
    upload.push(kib(511));
    expect(asked).toEqual(["pause", "resume"]);
  });

  it("are dropped where the caller's side ended without EOF, and its sender is not held back any more", async () => {
    const { asked, upload } = waiting();
    upload.push(kib(512));
    upload.end(new LinkLost("cut"));
    upload.end(); // What ended it first stands.
    upload.push(kib(512));
    expect(asked).toEqual(["pause", "resume"]);
    await expect(upload.read()).rejects.toThrow("cut");
  });

  it("are read whole after EOF, behind which nothing counts", async () => {
    const { upload } = waiting();
    upload.push(kib(1));
    upload.end();
    upload.end(new LinkLost("late"));
    upload.push(kib(1));
    expect(await upload.read()).toHaveLength(1);
    expect(await upload.read()).toBeUndefined();
  });
});
