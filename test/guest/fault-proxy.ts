import { connect, createServer, type Socket } from "node:net";
import type { GuestAddress } from "@holdfast/workspace";
import { onTestFinished } from "vitest";
import { host } from "./guest-process.ts";

/** A relay before a guest whose link can be cut, refused, silenced or slowed. */
export interface FaultProxy {
  readonly address: GuestAddress;
  /** Ends every connection now. */
  cut(): void;
  /** Ends every connection, and every new one, until told otherwise. */
  refuse(refusing: boolean): void;
  /** Connections refused so far. */
  readonly refused: number;
  /** Cuts each stream when the guest first answers on it, after it was opened and before the answer is passed on. */
  loseAnswers(losing: boolean): void;
  /** Answers lost so far. */
  readonly lost: number;
}

export async function faultProxy(guest: GuestAddress): Promise<FaultProxy> {
  const open = new Set<Socket>();
  let refusing = false;
  let losing = false;
  let lost = 0;
  let refused = 0;
  const server = createServer((near) => {
    if (refusing) {
      refused += 1;
      near.resetAndDestroy();
      return;
    }
    const far = connect(guest.port, guest.host);
    const end = (): void => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        open.delete(socket);
        end();
      });
    }
    near.pipe(far);
    let opening = Buffer.alloc(0);
    far.on("data", (chunk) => {
      if (opening.length < openingBytes) opening = Buffer.concat([opening, chunk]);
      if (losing && answersStream(opening)) {
        lost += 1;
        end();
        return;
      }
      if (near.write(chunk)) return;
      far.pause();
      near.once("drain", () => far.resume());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const bound = server.address();
  if (typeof bound !== "object" || bound === null) throw new Error("the proxy has no address");
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  onTestFinished(() => {
    cut();
    server.close();
  });
  return {
    address: { ...guest, port: bound.port },
    cut,
    refuse(now) {
      refusing = now;
      if (now) cut();
    },
    loseAnswers(now) {
      losing = now;
    },
    get refused() {
      return refused;
    },
    get lost() {
      return lost;
    },
  };
}

/** Enough to see the handshake's answers and the type of the frame that follows them. */
const openingBytes = 4_096;
const welcome = 4;
const message = 33;

/** True once the guest's bytes show an answer to OPEN: a MESSAGE after the WELCOME. (docs/design/guest-link.md) */
function answersStream(bytes: Buffer): boolean {
  let welcomed = false;
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt32BE(at)) {
    const type = bytes.readUInt8(at + 4);
    if (welcomed) return type === message;
    welcomed = type === welcome;
  }
  return false;
}
