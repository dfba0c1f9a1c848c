import { fileStreamsMax } from "@holdfast/contract";
import { AnsweredError } from "@holdfast/guest-link";

/** Counts the streams of files that are carried at once. */
export class FileStreams {
  #open = 0;

  /** Runs one, or refuses it because there are too many. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#open >= fileStreamsMax) {
      throw new AnsweredError(
        "STREAM_CAPACITY",
        `The guest carries ${fileStreamsMax} streams of files at once, and no more. Nothing was done; try again later.`,
        { limit: String(fileStreamsMax), setting: "fileStreamsMax" },
      );
    }
    this.#open += 1;
    try {
      return await work();
    } finally {
      this.#open -= 1;
    }
  }
}
