import { randomBytes, X509Certificate } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { generate } from "selfsigned";

/** What the server proves itself with and what callers must show. */
export interface Credentials {
  readonly key: string;
  /** The certificate; self-signed, so it is its own authority. */
  readonly cert: string;
  readonly token: string;
}

const dayMs = 86_400_000;
const validDays = 3650;

/** Reads the credentials kept in a directory, making what is absent or about to expire. */
export async function keepCredentials(directory: string, now: Date): Promise<Credentials> {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const tokenPath = join(directory, "token");
  if (!existsSync(tokenPath)) writePrivately(tokenPath, randomBytes(32).toString("base64url"));
  const token = readFileSync(tokenPath, "utf8").trim();
  if (token.length < 32) {
    throw new Error(`The token in ${tokenPath} is too short to be ours. Remove the file to have a new one made.`);
  }

  // Key and certificate are one file, so that a crash cannot leave one without the other.
  const tlsPath = join(directory, "tls.pem");
  if (!existsSync(tlsPath) || expiresSoon(readFileSync(tlsPath, "utf8"), now)) {
    const made = await makeCertificate(now);
    writePrivately(tlsPath, `${made.private.trim()}\n${made.cert.trim()}\n`);
  }
  const key = readFileSync(tlsPath, "utf8");
  return { key, cert: new X509Certificate(key).toString(), token };
}

function expiresSoon(pem: string, now: Date): boolean {
  return new X509Certificate(pem).validToDate.getTime() - now.getTime() < 30 * dayMs;
}

async function makeCertificate(now: Date): Promise<{ private: string; cert: string }> {
  return generate([{ name: "commonName", value: "holdfast-embedded-cluster" }], {
    keyType: "ec",
    algorithm: "sha256",
    notBeforeDate: new Date(now.getTime() - dayMs),
    notAfterDate: new Date(now.getTime() + validDays * dayMs),
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 7, ip: "127.0.0.1" },
        ],
      },
    ],
  });
}

/** Writes a file that only its owner reads, whole or not at all. */
export function writePrivately(path: string, content: string): void {
  const draft = `${path}.new`;
  writeFileSync(draft, content, { mode: 0o600 });
  renameSync(draft, path);
}
