import { closeSync, existsSync, mkdirSync, openSync } from "node:fs";
import { onTestFinished } from "vitest";
import { addon } from "./addon.testing.ts";

/** Whether this machine lets a test mount a file system of its own. */
export const canMount = process.getuid?.() === 0 && existsSync("/dev/fuse");

const detach = 2;

/**
 * Mounts a file system at this directory, which is made, that never answers the kernel: whatever is asked about it waits, as with a
 * server that is gone. Returns how to have the kernel give all that up, with an error.
 */
export async function deadMount(directory: string): Promise<() => void> {
  const lib = (await addon()).load(null);
  const mount = lib.func(
    "int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)",
  );
  const unmount = lib.func("int umount2(const char *target, int flags)");
  mkdirSync(directory);
  const fd = openSync("/dev/fuse", "r+");
  if (mount("dead", directory, "fuse", 0, `fd=${fd},rootmode=40000,user_id=0,group_id=0`) !== 0) {
    closeSync(fd);
    throw new Error(`nothing can be mounted at ${directory}`);
  }
  let dead = true;
  const giveUp = (): void => {
    if (dead) closeSync(fd);
    dead = false;
  };
  onTestFinished(() => {
    giveUp();
    unmount(directory, detach);
  });
  return giveUp;
}
