import { advanced } from '../../store/identity-age.ts'
import type { IdentityLimits } from '../../store/identity-age.ts'
import type { Trimmed, TrimLimit } from '../../store/retention-store.ts'
import type { LogMetadata } from '../server/log-metadata.ts'
import type { Connection } from '../server/connection.ts'
import { IDENTITIES, storeIdentities, UPTIME } from './deleted-identities.ts'
import type { DeletedEntry } from './deleted-identities.ts'
import { fieldsOf, timesOf, tokenOf } from './entry-message.ts'
import { PARTS, SIZE } from '../server/chunked-payloads.ts'
import type { ChunkedPayloads } from '../server/chunked-payloads.ts'
import { MessageCursor } from '../server/message-cursor.ts'
import { retryTransient } from '../server/retry-transient.ts'

/** Maximum number of messages of identities that one step deletes. */
const SWEEP_STEP = 500

/** A reader for which retention waits. */
export interface Holder {
  readonly name: string
  /** The number of its cursor. */
  readonly cursor: number
}

/** The entries that a step deletes. */
interface NatsTrimPlan extends Trimmed {
  readonly last: number
  readonly token: string
  readonly recorded: number
  readonly entries: readonly DeletedEntry[]
  /** The source and the field of the messages that have chunks. */
  readonly parts: readonly (readonly [source: string, field: string])[]
}

/**
 * Deletes the oldest entries. Their identities are stored first, then how far the log is trimmed, and then they are deleted; the
 * next step completes what a crash has left.
 */
export class NatsTrimming {
  readonly #connection: Connection
  readonly #about: LogMetadata
  readonly #payloads: ChunkedPayloads
  readonly #limits: IdentityLimits
  /** Time at which this open log has trimmed last, by `performance.now`. */
  #trimmed = performance.now()

  constructor(connection: Connection, about: LogMetadata, payloads: ChunkedPayloads, limits: IdentityLimits) {
    this.#connection = connection
    this.#about = about
    this.#payloads = payloads
    this.#limits = limits
  }

  /** @param holders The readers whose entries stay. */
  async trim(limit: TrimLimit, holders: readonly Holder[]): Promise<Trimmed> {
    await this.#about.read()
    await this.#purge()
    const plan = await this.#plan(limit, holders)
    const { deleted, isDone, blockedBy, last, token, recorded, entries, parts } = plan
    if (deleted > 0) {
      const { names } = this.#connection
      const now = performance.now()
      const { uptime } = advanced({ uptime: this.#about.current.uptime, clock: this.#trimmed }, now)
      const identities = this.#about.current.identities + deleted
      await storeIdentities(this.#connection, (source) => names.identities(source), entries, {
        uptime,
        identities,
      })
      this.#trimmed = now
      await this.#about.change((about) => ({
        ...about,
        trimmed: about.trimmed.sequence < last ? { sequence: last, token, recorded } : about.trimmed,
        uptime: Math.max(about.uptime, uptime),
        identities: Math.max(about.identities, identities),
      }))
      await this.#purge()
      for (const [source, field] of parts) {
        await retryTransient(this.#connection, () => this.#payloads.remove(source, field))
      }
    }
    return { deleted, isDone, blockedBy }
  }

  /** Deletes identities that are old enough. Returns whether there are no more of them for now. */
  async trimIdentities(): Promise<boolean> {
    const { jsm, names } = this.#connection
    const { uptime, identities } = await this.#about.read()
    const { minUptime, minNewer } = this.#limits
    const cursor = new MessageCursor(this.#connection, {
      stream: names.state,
      subject: names.allIdentities,
      fieldsOnly: true,
    })
    await cursor.pull(SWEEP_STEP)
    cursor.close()
    const isOld = (age: { field(name: string): string }) =>
      Number(age.field(UPTIME)) <= uptime - minUptime &&
      Number(age.field(IDENTITIES)) <= identities - minNewer
    const old = cursor.messages.filter(isOld)
    for (const { sequence } of old) {
      await retryTransient(this.#connection, () => jsm.streams.deleteMessage(names.state, sequence, false))
    }
    return old.length < SWEEP_STEP
  }

  async #plan(
    { recordedBefore = Infinity, bytes: maxBytes = Infinity, limit }: TrimLimit,
    holders: readonly Holder[],
  ): Promise<NatsTrimPlan> {
    const { trimmed } = this.#about.current
    const { names } = this.#connection
    const cursor = new MessageCursor(this.#connection, {
      stream: names.events,
      after: trimmed.sequence,
      fieldsOnly: true,
    })
    const entries: DeletedEntry[] = []
    const parts: (readonly [string, string])[] = []
    const { sequence: last, token, recorded: trimmedAt } = trimmed
    const plan = { last, token, recorded: trimmedAt, deleted: 0, bytes: 0, entries, parts }
    const ended = (isDone: boolean, blockedBy: string | null = null) => ({ ...plan, isDone, blockedBy })
    for await (const message of cursor.all(limit + 1)) {
      const fields = fieldsOf(message)
      const recorded = Math.max(plan.recorded, timesOf(message)?.recorded ?? 0)
      if (recorded >= recordedBefore) return ended(true)
      const holder = holders.find(({ cursor: position }) => position < message.sequence)
      if (holder !== undefined) return ended(true, holder.name)
      if (plan.deleted === limit || plan.bytes >= maxBytes) return ended(false)
      const source = tokenOf(message.subject)
      plan.last = message.sequence
      plan.token = message.token
      plan.recorded = recorded
      plan.bytes += Number(message.field(SIZE) || message.field('Nats-Msg-Size'))
      // A message that is no entry has no identity.
      if (fields !== undefined) {
        plan.deleted += 1
        entries.push({ source, identity: [fields.id, fields.revision, fields.completeness] })
      }
      if (message.field(PARTS) !== '') parts.push([source, message.field(PARTS)])
    }
    return ended(true)
  }

  /** Deletes the entries up to where the log is trimmed. */
  async #purge(): Promise<void> {
    const { jsm, names } = this.#connection
    const { sequence } = this.#about.current.trimmed
    await retryTransient(this.#connection, async () => {
      const { state } = await jsm.streams.info(names.events)
      if (state.first_seq <= sequence) await jsm.streams.purge(names.events, { seq: sequence + 1 })
    })
  }
}
