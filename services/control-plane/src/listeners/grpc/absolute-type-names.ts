import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/**
 * A file's descriptor with every type named in full, map entries and JSON names by their field, as protoc writes it. proto-loader writes
 * names relative to where they stand, entries as it likes and no JSON names, which strict clients refuse.
 */
export function withAbsoluteTypeNames(bytes: Uint8Array): Buffer {
  const file = fromBinary(FileDescriptorProtoSchema, bytes);
  for (const message of file.messageType) nameMapEntries(message);
  const known = new Set<string>();
  const root = file.package === "" ? "" : `.${file.package}`;
  for (const message of file.messageType) declare(message, root, known);
  for (const { name } of file.enumType) known.add(`${root}.${name}`);
  for (const message of file.messageType) complete(message, root, known);
  for (const method of file.service.flatMap((service) => service.method)) {
    method.inputType = absolute(method.inputType, root, known);
    method.outputType = absolute(method.outputType, root, known);
  }
  return bufferOf(file);
}

/** A map field `some_names` has its entries in a nested `SomeNamesEntry`. */
function nameMapEntries(message: DescriptorProto): void {
  for (const field of message.field)
    field.jsonName ||= field.name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  for (const entry of message.nestedType.filter((nested) => nested.options?.mapEntry === true)) {
    const field = message.field.find(({ typeName }) => typeName.split(".").at(-1) === entry.name);
    if (!field) continue;
    const capitalised = field.name.replace(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
    entry.name = `${capitalised}Entry`;
    field.typeName = entry.name;
  }
  for (const nested of message.nestedType) nameMapEntries(nested);
}

function declare(message: DescriptorProto, scope: string, known: Set<string>): void {
  const name = `${scope}.${message.name}`;
  known.add(name);
  for (const nested of message.nestedType) declare(nested, name, known);
  for (const { name: enumName } of message.enumType) known.add(`${name}.${enumName}`);
}

function complete(message: DescriptorProto, scope: string, known: Set<string>): void {
  const name = `${scope}.${message.name}`;
  for (const field of message.field) if (field.typeName !== "") field.typeName = absolute(field.typeName, name, known);
  for (const nested of message.nestedType) complete(nested, name, known);
}

/** The innermost scope that declares the name, as protobuf resolves it; one that is not of this file stays as it is. */
function absolute(typeName: string, scope: string, known: ReadonlySet<string>): string {
  if (typeName.startsWith(".")) return typeName;
  for (let at = scope; ; at = at.slice(0, at.lastIndexOf("."))) {
    if (known.has(`${at}.${typeName}`)) return `${at}.${typeName}`;
    if (at === "") return typeName;
  }
}

function bufferOf(file: FileDescriptorProto): Buffer {
  const bytes = toBinary(FileDescriptorProtoSchema, file);
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
