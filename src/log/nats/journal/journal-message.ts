import { isObject } from '../../../protocol/json.ts'
import type { Position, ReaderState } from '../../store/contract.ts'
import type { NewDeadLetter } from '../../store/dead-letter-store.ts'
import type { PreparedEntry } from '../../store/new-entry.ts'
import type { Timer, TimerChange } from '../../../streams/timers.ts'
import type { ProcessCommit, StateChange } from '../../store/process-store.ts'
import type { DeadLetterSelection } from '../../state/reader-dead-letters.ts'
import type { SavedProcessHead } from '../../state/processes.ts'
import { TextReader, TextWriter } from './framed-texts.ts'

/** The claim of a name. */
export interface JournalClaim {
  /** The number of the message that has claimed the name or given it up. It is the token of the fence. */
  readonly token: number
  readonly owner: string
  /** The open log, whose lease says whether it lives. */
  readonly instance: string
  /** Whether it has not given the name up. */
  readonly isHeld: boolean
}

/** The state of a name that each message of its journal repeats, so that the last message alone is enough. */
export interface JournalHead {
  /** The name that is claimed, of a stream or a reader. */
  readonly name: string
  readonly claim: JournalClaim
  /** The upstream position; null for none. */
  readonly position: string | null
  /** State of the reader; null if the name is no reader. */
  readonly reader: ReaderState | null
  /** Whether retention waits for the process. */
  readonly holdsRetention: boolean
  /** The token of the claim that waits for room; null for none. */
  readonly pausedToken: number | null
  /** Number of dead letters. */
  readonly deadLetters: number
  /** The entries of commits up to this number are in the log. */
  readonly published: number
}

/** A dead letter of a commit. The copy of its entry is a message of its own. */
export type JournalDeadLetter = Pick<NewDeadLetter, 'position' | 'error' | 'attempts' | 'redelivery'> & {
  /** Whether there is a copy of its entry. */
  readonly hasCopy: boolean
}

/** The contents of a commit beside the head. */
export interface JournalCommit {
  readonly deadLetters: readonly JournalDeadLetter[]
  readonly redelivered: readonly Position[]
  /** Time of the log, in Unix ms. */
  readonly now: number
  readonly process: ProcessCommit | undefined
  readonly entries: readonly PreparedEntry[]
}

/** Reference to a snapshot: the contents of a journal before a message, beside the head. */
export interface SnapshotReference {
  /** The last token of the subject of its parts. */
  readonly token: string
  /** Number of parts; 0 if there is no content. */
  readonly parts: number
  readonly bytes: number
  /** The greatest redelivery number of a dead letter. */
  readonly lastRedelivery: number
  readonly process: SavedProcessHead | null
}

/** A message of a journal. */
export interface JournalMessage {
  readonly head: JournalHead
  readonly commit?: JournalCommit
  /** Dead letters that were marked for redelivery. */
  readonly redelivered?: DeadLetterSelection
  /** Dead letters that were removed. */
  readonly removed?: DeadLetterSelection
  /** Whether the reader was removed, with its state as a process. */
  readonly isDropped?: boolean
  /** Snapshot of the earlier messages of the journal, which are deleted. */
  readonly snapshot?: SnapshotReference
}

/** Token in a message that claims a name or gives it up: it stands for the number of the message, which is not known before it is stored. */
export const OWN_TOKEN = 0

/** A message as it is published. */
export function encodeMessage({ commit, snapshot, ...rest }: JournalMessage): Uint8Array {
  const texts = new TextWriter()
  return texts.payload({
    ...rest,
    ...(commit && { commit: encodeCommit(commit, texts) }),
    ...(snapshot && { snapshot: encodeSnapshot(snapshot, texts) }),
  })
}

function encodeCommit({ process, entries, ...rest }: JournalCommit, texts: TextWriter) {
  return {
    ...rest,
    process: process && encodeProcess(process, texts),
    entries: entries.map(({ source, id, type, json, completeness, backfill, cause }) => {
      for (const text of [source, id, type, json]) texts.add(text)
      return { completeness, backfill, cause }
    }),
  }
}

function encodeProcess({ checkpoint, state, timers, ...rest }: ProcessCommit, texts: TextWriter) {
  texts.add(checkpoint)
  return {
    ...rest,
    state: state.map((change) => encodeState(change, texts)),
    timers: timers.map((timer) => encodeTimer(timer, texts)),
  }
}

/** 1 if the key has a state, 0 if it is removed. */
export function encodeState({ key, state }: StateChange, texts: TextWriter): number {
  texts.add(key)
  if (state !== null) texts.add(state)
  return Number(state !== null)
}

export function decodeState(hasState: unknown, texts: TextReader): StateChange {
  return { key: texts.next(), state: hasState === 1 ? texts.next() : null }
}

export type EncodedTimer = readonly [clock: Timer['clock'], due: number, hasData: number] | null

export function encodeTimer(timer: TimerChange, texts: TextWriter): EncodedTimer {
  texts.add(timer.key)
  texts.add(timer.name)
  if (timer.due === null) return null
  texts.add(timer.cause)
  if (timer.data !== null) texts.add(timer.data)
  return [timer.clock, timer.due, Number(timer.data !== null)]
}

export function decodeTimer(encoded: EncodedTimer, texts: TextReader): TimerChange {
  const key = texts.next()
  const name = texts.next()
  if (encoded === null) return { key, name, due: null }
  const [clock, due, hasData] = encoded
  return { key, name, clock, due, cause: texts.next(), data: hasData === 1 ? texts.next() : null }
}

function encodeSnapshot({ process, ...rest }: SnapshotReference, texts: TextWriter) {
  if (process !== null) texts.add(process.checkpoint)
  return { ...rest, process: process && { ...process, checkpoint: '' } }
}

/** The JSON head of a message that {@link encodeMessage} has encoded. */
type EncodedMessage = Omit<JournalMessage, 'commit'> & { readonly commit?: ReturnType<typeof encodeCommit> }

/**
 * Reads a message of a journal.
 *
 * @param sequence Its number.
 * @throws {SyntaxError} if it is damaged.
 */
export function decodeMessage(payload: Uint8Array, sequence: number): JournalMessage {
  const texts = new TextReader(payload)
  const encoded = texts.head
  if (!isEncodedMessage(encoded)) throw new SyntaxError('it has no head')
  const { commit, snapshot, head, ...rest } = encoded
  const { claim } = head
  return {
    ...rest,
    head: { ...head, claim: { ...claim, token: claim.token === OWN_TOKEN ? sequence : claim.token } },
    ...(commit && { commit: decodeCommit(commit, texts) }),
    ...(snapshot && { snapshot: decodeSnapshot(snapshot, texts) }),
  }
}

function isEncodedMessage(value: unknown): value is EncodedMessage {
  return isObject(value) && isObject(value['head']) && isObject(value['head']['claim'])
}

function decodeCommit(
  { process, entries, ...rest }: ReturnType<typeof encodeCommit>,
  texts: TextReader,
): JournalCommit {
  return {
    ...rest,
    process: process && {
      ...process,
      checkpoint: texts.next(),
      state: process.state.map((hasState) => decodeState(hasState, texts)),
      timers: process.timers.map((timer) => decodeTimer(timer, texts)),
    },
    entries: entries.map(({ completeness, backfill, cause }) => {
      const [source, id, type, json] = [texts.next(), texts.next(), texts.next(), texts.next()]
      return { source, id, type, json, completeness, backfill, cause }
    }),
  }
}

function decodeSnapshot({ process, ...rest }: SnapshotReference, texts: TextReader): SnapshotReference {
  return { ...rest, process: process && { ...process, checkpoint: texts.next() } }
}
