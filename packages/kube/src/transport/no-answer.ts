/**
 * No complete answer came. `sent: false` proves that not one byte of the request left this process; `sent: true` proves nothing:
 * the server may have acted.
 */
export class NoAnswer extends Error {
  readonly sent: boolean;
  constructor(sent: boolean, message: string, cause: unknown) {
    super(message, { cause });
    this.name = "NoAnswer";
    this.sent = sent;
  }
}
