import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { AnsweredError } from "@holdfast/guest-link";
import { describe, expect, it } from "vitest";
import { Fence } from "./fence.ts";
import { admissionBy, judgements } from "./judged-methods.ts";

const protos = fileURLToPath(new URL("../../../../proto/holdfast/guest/v1/", import.meta.url));

/** Every method of the guest API, as it travels. */
function methodsOfProtos(): string[] {
  return readdirSync(protos).flatMap((name) => {
    const text = readFileSync(join(protos, name), "utf8");
    return [...text.matchAll(/^service (\w+) \{\n([\s\S]*?)^\}/gm)].flatMap(([, service, body]) =>
      [...(body ?? "").matchAll(/^ {2}rpc (\w+)\(/gm)].map(([, rpc]) => `holdfast.guest.v1.${service}/${rpc}`),
    );
  });
}

describe("the table of judged methods", () => {
  it("G5a names every method of the guest API, and no other", () => {
    const methods = methodsOfProtos();
    expect(methods.length).toBeGreaterThan(25);
    expect(Object.keys(judgements).sort()).toEqual(methods.sort());
  });

  it("G5a refuses exactly the judged ones to a superseded caller, and what it does not know to everybody", async () => {
    const fence = new Fence(2n, { write: async () => undefined });
    const admit = admissionBy(fence);
    for (const [method, judgement] of Object.entries(judgements)) {
      const call = (): void => admit(method, 1n);
      if (judgement === "judged") expect(call).toThrow(AnsweredError);
      else expect(call).not.toThrow();
      expect(() => admit(method, 2n)).not.toThrow();
    }
    expect(() => admit("holdfast.guest.v1.NewService/Change", 2n)).toThrow(/not in the table/);
  });
});
