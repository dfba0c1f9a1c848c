import { bootIdOf, type ExecutionId } from "@holdfast/contract";
import { HoldfastError } from "@holdfast/errors";
import type {
  AttachWish,
  ExecutionEvent,
  GuestExecutions,
  SignalOrder,
  StdinInput,
  StdinTaken,
} from "@holdfast/workspace";

/** The commands of a guest that knows none. Replace a method to make it know some. */
export class FakeExecutions implements GuestExecutions {
  async *attach({ executionId }: AttachWish): AsyncGenerator<ExecutionEvent> {
    throw unknown(executionId);
  }

  get: GuestExecutions["get"] = async (id) => {
    throw unknown(id);
  };

  list: GuestExecutions["list"] = async () => ({ executions: [], bootId: bootIdOf("boot") });

  async signal({ executionId }: SignalOrder): Promise<{ readonly alreadyEnded: boolean }> {
    throw unknown(executionId);
  }

  async writeStdin({ executionId }: StdinInput): Promise<StdinTaken> {
    throw unknown(executionId);
  }

  cancel: GuestExecutions["cancel"] = async ({ executionId }) => {
    throw unknown(executionId);
  };
}

function unknown(id: ExecutionId): HoldfastError {
  return new HoldfastError("EXECUTION_NOT_FOUND", { message: `This guest knows no execution ${id}.` });
}
