import type { CloseReason } from '../../protocol/live.ts'
import { subjectSource } from '../../protocol/gateway-event.ts'
import type { Entry } from '../../log/store/contract.ts'
import { groupSource } from '../../protocol/event.ts'
import { isObject } from '../../protocol/json.ts'
import { isId } from '../../protocol/id.ts'
import type { GrantedRequests } from '../grant.ts'
import type { CheckedGrant } from './checked-grant.ts'
import { Omission } from './omission.ts'

/** Why an access ends before its connection does. */
export type AccessEnd = Extract<CloseReason, 'expired' | 'revoked'>

/** The rights of a request: what it may see and do. Made once for each connection. */
export interface Access {
  readonly sub: string
  /** The id of the token, which a cookie shares with its ticket. */
  readonly grant: string
  /** When it ends, in Unix ms. */
  readonly expires: number
  /** The same text for grants that leave out the same fields. */
  readonly shape: string
  readonly requests: GrantedRequests
  /** Types of the log's entries that may be seen, including types of applications. */
  readonly types: readonly string[]
  maySeeView(name: string): boolean
  /** @param source Undefined for an object without a source, which only grants of all sources see. */
  maySeeSource(source: string | undefined): boolean
  /** Whether an entry of the log itself may be seen: its type, and its source. A grant of a group includes its runs. */
  maySeeEntry(entry: Entry): boolean
  /** The value without the omitted fields; the value itself if it has none. */
  omit(value: unknown): unknown
  /** Calls the listener once the access has ended; in a microtask if it has already ended. Returns a function that removes it. */
  onEnd(listener: (reason: AccessEnd) => void): () => void
}

/** The timers and listeners that end a {@link GrantedAccess}. */
export interface Endings {
  /** Calls the function when the access ends, until the returned function is called. */
  watch(access: GrantedAccess, onEnd: (reason: AccessEnd) => void): () => void
}

/** The access of a grant whose token was verified. */
export class GrantedAccess implements Access {
  readonly sub: string
  readonly grant: string
  readonly expires: number
  /** When the grant was made, in Unix ms. */
  readonly issued: number
  readonly requests: GrantedRequests
  readonly types: readonly string[]
  readonly #views: ReadonlySet<string>
  readonly #sources: ReadonlySet<string>
  /** Prefixes, without the `*` at their ends. */
  readonly #prefixes: readonly string[]
  readonly #omission: Omission
  readonly #endings: Endings

  constructor(
    { sub, views, sources, types, omit, requests }: CheckedGrant,
    { grant, issued, expires }: Pick<GrantedAccess, 'grant' | 'issued' | 'expires'>,
    endings: Endings,
  ) {
    this.sub = sub
    this.grant = grant
    this.issued = issued
    this.expires = expires
    this.requests = requests
    this.#views = new Set(views)
    this.#sources = new Set([...sources.filter((source) => !source.endsWith('*')), subjectSource(sub)])
    this.#prefixes = sources.filter((source) => source.endsWith('*')).map((source) => source.slice(0, -1))
    this.types = types
    this.#omission = new Omission(omit)
    this.#endings = endings
  }

  get shape(): string {
    return this.#omission.shape
  }

  maySeeView(name: string): boolean {
    return this.#views.has(name)
  }

  maySeeSource(source: string | undefined): boolean {
    if (source === undefined) return this.#prefixes.includes('')
    return this.#sources.has(source) || this.#prefixes.some((prefix) => source.startsWith(prefix))
  }

  maySeeEntry(entry: Entry): boolean {
    if (!this.types.includes(entry.type)) return false
    if (this.maySeeSource(entry.source)) return true
    if (entry.type !== 'task_run.state') return false
    // Another version, or another program, may have recorded it.
    const { run }: { readonly run?: unknown } = Object(entry.data)
    const group = isObject(run) ? run['taskgroup_id'] : undefined
    return isId(group) && this.maySeeSource(groupSource(group))
  }

  omit(value: unknown): unknown {
    return this.#omission.of(value)
  }

  onEnd(listener: (reason: AccessEnd) => void): () => void {
    return this.#endings.watch(this, listener)
  }
}
