import type { ResearchEvent } from '../protocol/event.ts'
import type { CheckpointStore, HandledFact } from './checkpoint-store.ts'

/** An event as far as a checkpoint looks at it. */
export type Fact = Pick<ResearchEvent, 'id' | 'source'>

/**
 * The place of a pipeline. `client.watch({ checkpoint })` tells it what comes, `deliver(handler, { checkpoint })` what
 * was handled; it moves a stream's position only past a gap-free run of handled events.
 */
export interface Checkpoint {
  /** The cursor behind which a stream goes on; undefined at its beginning. */
  position(stream: string): string | undefined
  /** Facts that were handled before this start. */
  readonly handledBefore: Iterable<HandledFact>
  /** A copy of a fact came from a stream, in the order of the stream. Called before it is emitted. */
  entered(stream: string, cursor: string | undefined, fact: Fact): void
  /** A webhook stands for these facts; `done` is called when each of them was handled. Called before they are emitted. */
  delivered(facts: readonly Fact[], done: () => void): void
  /** The emission of a fact has returned. Nobody will handle it who has not received it by now. */
  passed(fact: Fact): void
  /** See `Progress`. */
  received(event: Fact): void
  /** See `Progress`. */
  handled(event: Fact): Promise<void>
  /** Saves what is not saved yet and gives the store up. */
  close(): Promise<void>
}

/** Opens the checkpoint that a store keeps. */
export function openCheckpoint(store: CheckpointStore): Promise<Checkpoint> {
  throw new Error(`not written yet: ${String(store)}`)
}
