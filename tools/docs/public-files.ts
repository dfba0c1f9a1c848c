import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { createFileRegistry, type DescFile, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/** The protos of the public API with their comments, in the order of a reader. */
export function publicFiles(root: string): DescFile[] {
  const image = execFileSync(join(root, "node_modules/.bin/buf"), ["build", root, "-o", "-"], {
    maxBuffer: 64 * 1024 * 1024,
  });
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, image));
  const names = ["workspace", "execution", "file", "inventory", "server", "common"];
  const files = [...registry.files].filter((file) => /^holdfast\/v1\/[a-z_]+$/.test(file.name));
  const place = (file: DescFile): number => (names.indexOf(shortNameOf(file)) + names.length + 1) % (names.length + 1);
  return files.sort((a, b) => place(a) - place(b));
}

/** `workspace` of `holdfast/v1/workspace`. */
export function shortNameOf(file: DescFile): string {
  return file.name.split("/").at(-1) ?? file.name;
}
