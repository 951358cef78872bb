import { ArgumentError } from '../protocol/argument-error.ts'
import { checkDuration, checkInteger } from '../protocol/check.ts'
import type { CheckpointChanges, CheckpointState, CheckpointStore, HandledFact } from './checkpoint-store.ts'
import { CheckpointError, CheckpointInUseError } from './errors.ts'
import { MAX_HANDLED, MOST_HANDLED, REMEMBER } from './handled-facts.ts'
import type { HandledFactsLimits } from './handled-facts.ts'

/** Settings of {@link memoryCheckpointStore}. */
export interface MemoryCheckpointStoreOptions extends HandledFactsLimits {
  /** Unix time in ms. Default `Date.now`. */
  readonly clock?: () => number
}

/** Forgotten facts that may be kept, however few others there are. */
const FORGOTTEN_AT_ONCE = 1_000

/**
 * A checkpoint store in memory: for tests, and for pipelines that start again within one process.
 *
 * @throws {ArgumentError} for an option that cannot be right.
 */
export function memoryCheckpointStore(options: MemoryCheckpointStoreOptions = {}): CheckpointStore {
  const { maxHandled = MAX_HANDLED, remember = REMEMBER, clock = Date.now } = options
  checkInteger('maxHandled', maxHandled, 0, MOST_HANDLED)
  checkDuration('remember', remember, true)
  if (typeof clock !== 'function') throw new ArgumentError('clock', 'a function', clock)

  const positions = new Map<string, string>()
  // In the order of handling: what stands before `first` is forgotten, and so the oldest need no search.
  let handled: (HandledFact & { readonly at: number })[] = []
  let first = 0
  let held = false

  function load(): CheckpointState {
    if (held) {
      throw new CheckpointInUseError(
        'the checkpoint in memory is in use by another pipeline: close it first',
        {
          file: 'memory',
          owner: 'another pipeline',
          expiresAt: undefined,
        },
      )
    }
    held = true
    forget()
    return { positions: new Map(positions), handled: handledFacts }
  }

  function save(changes: CheckpointChanges): void {
    if (!held) throw new CheckpointError('the checkpoint store is not open')
    for (const [stream, position] of changes.positions) positions.set(stream, position)
    const at = clock()
    for (const { id, source, parts } of changes.handled) handled.push({ id, source, parts, at })
    forget()
  }

  function forget(): void {
    const expired = clock() - remember
    while (handled.length - first > maxHandled || (handled[first]?.at ?? Infinity) <= expired) first += 1
    // What is kept moves once, on average, for each that is forgotten.
    if (first < FORGOTTEN_AT_ONCE || first * 2 < handled.length) return
    handled = handled.slice(first)
    first = 0
  }

  const handledFacts: Iterable<HandledFact> = {
    *[Symbol.iterator]() {
      for (const { id, source, parts } of handled.slice(first)) yield { id, source, parts }
    },
  }

  return { maxHandled, load, save, close: () => void (held = false) }
}
