import type { StoredStates } from '../../log/store/process-store.ts'
import { rowKey, rowPath, viewAddress } from '../../protocol/live.ts'
import type { RowKey } from '../../protocol/live.ts'
import type { ViewDefinition } from '../view.ts'
import type { Counters } from './counters.ts'
import { Feed } from './feed.ts'
import { SnapshotParts } from './snapshot-parts.ts'
import type { Scope, ViewRows } from './view-rows.ts'

/** A source that no grant names, for rows whose own cannot be found out. */
const NO_SOURCE = '\0'

/** A view as connections follow it. */
export class FollowedView implements ViewRows {
  readonly name: string
  /** The name of the process that makes it. */
  readonly process: string
  readonly reader: string
  readonly states: StoredStates
  readonly counters: Counters
  readonly feed: Feed
  readonly parts: SnapshotParts
  /** The reason why the view is no longer maintained. */
  failure: unknown
  readonly #definition: ViewDefinition
  readonly #params: readonly string[]

  constructor(
    { name, process }: { readonly name: string; readonly process: string },
    definition: ViewDefinition,
    states: StoredStates,
    counters: Counters,
  ) {
    this.name = name
    this.process = process
    this.reader = `process:${process}`
    this.states = states
    this.counters = counters
    this.feed = new Feed(this, () => this.parts.clear())
    this.parts = new SnapshotParts(this)
    this.#definition = definition
    this.#params = definition.params ?? []
  }

  /** The scope of these params; undefined if the view has other params. */
  scope(params: Readonly<Record<string, string>>): Scope | undefined {
    const names = this.#params
    const path = names.flatMap((name) => (Object.hasOwn(params, name) ? (params[name] ?? []) : []))
    if (path.length !== names.length || Object.keys(params).length !== names.length) return undefined
    const prefix = rowKey(path)
    // A single param may be an empty text.
    const rows = path.length === 0 ? { below: '', own: undefined } : { below: `${prefix}/`, own: prefix }
    return { address: viewAddress(this.name, params), prefix, path, ...rows }
  }

  scopeOf(key: RowKey): string {
    let end = -1
    for (let part = 0; part < this.#params.length; part++) {
      end = key.indexOf('/', end + 1)
      if (end === -1) return key
    }
    return end === -1 ? '' : key.slice(0, end)
  }

  sourceOf(key: RowKey): string | undefined {
    return this.#source(rowPath(key))
  }

  /** The resource of all rows of a scope; undefined if each row decides. */
  sourceOfScope({ path }: Scope): string | undefined {
    return path.length === 0 ? undefined : this.#source(path)
  }

  #source(path: readonly string[]): string | undefined {
    const { source } = this.#definition
    try {
      const found: unknown = source?.(path)
      return typeof found === 'string' ? found : undefined
    } catch {
      return NO_SOURCE
    }
  }
}
