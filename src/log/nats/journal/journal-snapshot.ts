import type { ReaderDeadLetter } from '../../state/reader-dead-letters.ts'
import type { NumberedState } from '../../state/processes.ts'
import { isObject } from '../../../protocol/json.ts'
import type { Timer } from '../../../streams/timers.ts'
import { TextReader, TextWriter } from './framed-texts.ts'
import { decodeState, decodeTimer, encodeState, encodeTimer } from './journal-message.ts'
import type { EncodedTimer } from './journal-message.ts'
import type { JournalState } from './journal-state.ts'

/** Size of a part after which the next one begins, in bytes. A message has room for one more state. */
const PART_BYTES = 256 * 1024

/** Size of an item of a part without its texts, in bytes, about. */
const ITEM_BYTES = 32

type SavedDeadLetter = readonly [position: string, deadLetter: ReaderDeadLetter<true>]

/** The head of a part. */
interface EncodedPart {
  readonly states: (readonly [change: number, hasState: number])[]
  readonly timers: EncodedTimer[]
  readonly deadLetters: SavedDeadLetter[]
}

/** Encodes the contents of a journal beside the head, in parts. */
export function* snapshotParts(state: JournalState): Generator<Uint8Array, void> {
  let part = new SnapshotPart()
  const saved = state.processes.saved(state.name)
  for (const each of saved?.states ?? []) {
    if (part.isFull) {
      yield part.payload()
      part = new SnapshotPart()
    }
    part.addState(each)
  }
  for (const each of saved?.timers ?? []) {
    if (part.isFull) {
      yield part.payload()
      part = new SnapshotPart()
    }
    part.addTimer(each)
  }
  for (const each of state.deadLetters.after(-1)) {
    if (part.isFull) {
      yield part.payload()
      part = new SnapshotPart()
    }
    part.addDeadLetter(each)
  }
  yield part.payload()
}

class SnapshotPart {
  readonly #texts = new TextWriter()
  readonly #head: EncodedPart = { states: [], timers: [], deadLetters: [] }
  #bytes = 0

  get isFull(): boolean {
    return this.#bytes + this.#texts.bytes >= PART_BYTES
  }

  addState(state: NumberedState): void {
    this.#bytes += ITEM_BYTES
    this.#head.states.push([state.change, encodeState(state, this.#texts)])
  }

  addTimer(timer: Timer): void {
    this.#bytes += ITEM_BYTES
    this.#head.timers.push(encodeTimer(timer, this.#texts))
  }

  addDeadLetter(deadLetter: SavedDeadLetter): void {
    this.#bytes += JSON.stringify(deadLetter).length
    this.#head.deadLetters.push(deadLetter)
  }

  payload(): Uint8Array {
    return this.#texts.payload(this.#head)
  }
}

/**
 * Restores the contents of one part. Call it for all parts in their order.
 *
 * @throws {SyntaxError} if it is damaged.
 */
export function restorePart(state: JournalState, payload: Uint8Array): void {
  const texts = new TextReader(payload)
  const encoded = texts.head
  if (!isEncodedPart(encoded)) throw new SyntaxError('it is no part of a snapshot')
  const { deadLetters } = encoded
  const states = encoded.states.map(([change, hasState]) => ({ ...decodeState(hasState, texts), change }))
  const timers = encoded.timers.flatMap((each) => {
    const timer = decodeTimer(each, texts)
    return timer.due === null ? [] : [timer]
  })
  state.processes.restoreParts(state.name, states, timers)
  for (const [position, deadLetter] of deadLetters) state.deadLetters.restore(position, deadLetter)
}

function isEncodedPart(value: unknown): value is EncodedPart {
  return (
    isObject(value) &&
    Array.isArray(value['states']) &&
    Array.isArray(value['timers']) &&
    Array.isArray(value['deadLetters'])
  )
}
