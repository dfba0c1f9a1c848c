import { expect, it, onTestFinished } from "vitest";
import { openTestServer, withDefaultNamespace } from "../../testing/test-server.ts";

const path = "/api/v1/namespaces/default/persistentvolumeclaims";

it.each(["volumeName", "storageClassName"])(
  "a claim whose %s is no text is refused, and passes for no claim without one",
  async (member) => {
    const test = await withDefaultNamespace(await openTestServer());
    onTestFinished(() => test.close());
    const claim = (value: unknown) => ({
      apiVersion: "v1",
      kind: "PersistentVolumeClaim",
      metadata: { name: "c" },
      spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } }, [member]: value },
    });
    expect(await test.call("POST", path, claim(7))).toMatchObject({
      code: 400,
      body: {
        message: expect.stringContaining(
          `cannot unmarshal number into Go struct field PersistentVolumeClaimSpec.spec.${member}`,
        ),
      },
    });
    expect((await test.call("GET", `${path}/c`)).code).toBe(404);
    expect((await test.call("POST", path, claim(null))).code).toBe(201);
  },
);
