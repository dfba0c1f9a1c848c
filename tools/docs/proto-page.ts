import type { DescEnum, DescField, DescFile, DescMessage, DescMethod, DescService } from "@bufbuild/protobuf";
import { ScalarType } from "@bufbuild/protobuf";
import { cellOf, commentOf } from "./comment-text.ts";
import { shortNameOf } from "./public-files.ts";

/** The page of one proto: its services, messages and enums, in the words of its comments. */
export function protoPage(file: DescFile): string {
  return [
    `# ${shortNameOf(file)}.proto`,
    `Generated from [proto/${file.name}.proto](../../proto/${file.name}.proto) by \`npm run generate\`; do not edit.`,
    ...file.services.map(serviceText),
    ...file.messages.map(messageText),
    ...file.enums.map(enumText),
  ]
    .join("\n\n")
    .concat("\n");
}

function serviceText(service: DescService): string {
  return [`## ${service.name}`, commentOf(service), ...service.methods.map(methodText)].join("\n\n");
}

function methodText(method: DescMethod): string {
  const upward = method.methodKind === "client_streaming" || method.methodKind === "bidi_streaming" ? "stream " : "";
  const downward = method.methodKind === "server_streaming" || method.methodKind === "bidi_streaming" ? "stream " : "";
  return [
    `### ${method.parent.name}.${method.name}`,
    `\`${method.parent.typeName}/${method.name}\`: ${upward}${linkTo(method.input)} → ${downward}${linkTo(method.output)}`,
    commentOf(method),
  ].join("\n\n");
}

function messageText(message: DescMessage): string {
  const rows = message.fields.map((field) => {
    const { oneof } = field;
    const optional = field.proto.proto3Optional ? "optional " : "";
    const group = oneof ? ` (one of \`${oneof.name}\`)` : "";
    return `| \`${field.name}\` | ${optional}${typeOf(field)}${group} | ${cellOf(field)} |`;
  });
  const table = rows.length === 0 ? [] : [["| field | type | |", "| --- | --- | --- |", ...rows].join("\n")];
  return [
    `## ${message.name}`,
    commentOf(message),
    ...table,
    ...message.nestedMessages.filter(isShown).map(messageText),
  ].join("\n\n");
}

function isShown(message: DescMessage): boolean {
  return message.proto.options?.mapEntry !== true;
}

function enumText(type: DescEnum): string {
  const rows = type.values.map((value) => `| \`${value.name}\` | ${cellOf(value)} |`);
  return [`## ${type.name}`, commentOf(type), ["| value | |", "| --- | --- |", ...rows].join("\n")].join("\n\n");
}

function typeOf(field: DescField): string {
  switch (field.fieldKind) {
    case "scalar":
      return ScalarType[field.scalar].toLowerCase();
    case "enum":
      return linkTo(field.enum);
    case "message":
      return linkTo(field.message);
    case "list":
      return `list of ${elementOf(field)}`;
    case "map":
      return `map of ${ScalarType[field.mapKey].toLowerCase()} to ${elementOf(field)}`;
  }
}

function elementOf(field: DescField & { fieldKind: "list" | "map" }): string {
  if (field.message) return linkTo(field.message);
  if (field.enum) return linkTo(field.enum);
  return field.scalar === undefined ? "?" : ScalarType[field.scalar].toLowerCase();
}

function linkTo(type: DescMessage | DescEnum): string {
  if (!type.typeName.startsWith("holdfast.v1.")) return `\`${type.typeName}\``;
  return `[${type.name}](${shortNameOf(type.file)}.md#${type.name.toLowerCase()})`;
}
