import { type FileInfo as FileInfoOnWire, FileType as FileTypeOnWire } from "@holdfast/api/holdfast/guest/v1/file_pb";
import { LinkProtocolError } from "@holdfast/guest-link";
import type { FileInfo, FileType } from "@holdfast/workspace";

/** What the guest says of a file, for the domain. */
export function fileInfoOf(file: FileInfoOnWire | undefined): FileInfo {
  if (file === undefined) throw new LinkProtocolError("the guest's answer has no file in it");
  const { path, rawName, size, mode, modifiedAt, etag, linkTarget } = file;
  return {
    path,
    rawName: rawName.length === 0 ? undefined : rawName,
    type: types[file.type] ?? "other",
    sizeBytes: Number(size),
    mode,
    modifiedAtMs: modifiedAt === undefined ? 0 : Number(modifiedAt.seconds) * 1000 + modifiedAt.nanos / 1_000_000,
    etag: etag === "" ? undefined : etag,
    linkTarget: linkTarget === "" ? undefined : linkTarget,
  };
}

const types: Readonly<Partial<Record<FileTypeOnWire, FileType>>> = {
  [FileTypeOnWire.REGULAR]: "regular",
  [FileTypeOnWire.DIRECTORY]: "directory",
  [FileTypeOnWire.SYMLINK]: "symlink",
  [FileTypeOnWire.FIFO]: "fifo",
  [FileTypeOnWire.SOCKET]: "socket",
  [FileTypeOnWire.DEVICE]: "device",
};
