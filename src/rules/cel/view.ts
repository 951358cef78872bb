import { celError, type CelError, type CelInput } from '@bufbuild/cel'
import type { ResearchEvent } from '../../protocol/event.ts'
import type { Json } from '../../protocol/json.ts'
import type { EventView, Problem } from './expression.ts'
import { fieldOf, toCelValue } from './json-value.ts'
import { ALERT_WORK, Allowance, EVENT_WORK, spending, uncounted } from './work.ts'

/** An event, or an entry of a log. */
export type ViewedEvent = ResearchEvent & { readonly revision?: number; readonly backfill?: boolean }

/** An event as expressions see it. Make one for each event: it caches computed values. */
export function viewOf(event: ViewedEvent): EventView {
  return new View(event)
}

/** The fields of an event that some expression reads. All expressions share this table, so that each field of an event is read once. */
const PATHS = new Map<string, FieldPath>()

interface FieldPath {
  readonly index: number
  /** The name of its variable in rewritten expressions. No name of a user can begin with `@`. */
  readonly variable: string
  readonly names: readonly string[]
  readonly missing: CelError
}

/** The beginning of the message of an error that stands for a missing field; the library's own begins so, too. */
export const MISSING = 'field not found: '

/** The variable that has the value of this field of the event. `names` begins with a field of the event. */
export function variableOf(names: readonly string[]): string {
  const key = JSON.stringify(names)
  const known = PATHS.get(key)
  if (known !== undefined) return known.variable
  const index = PATHS.size
  const variable = `@${index}`
  const path: FieldPath = { index, variable, names, missing: celError(MISSING + names.join('.')) }
  PATHS.set(key, path)
  Object.defineProperty(VARIABLES, variable, { get: () => current?.read(path) })
  return variable
}

/** The name of the variable of the n-th call of `changed()`. */
export function changedVariable(index: number): string {
  const variable = `@changed${index}`
  if (!(variable in VARIABLES)) {
    Object.defineProperty(VARIABLES, variable, { get: () => current?.changed[index] ?? false })
  }
  return variable
}

/** The variables of rewritten expressions. Each reads the view whose expression is evaluated. */
export const VARIABLES: Record<string, CelInput> = {}

/** An event, with the values that were computed for it. */
export class View implements EventView {
  readonly event: ViewedEvent
  isCut = false
  readonly work = new Allowance(EVENT_WORK)
  /** The values of expressions without `changed()`. */
  readonly results = new Map<string, Json | Problem>()
  /** For each `changed()` of the expression that is evaluated, its value. */
  changed: readonly boolean[] = []
  readonly #values: (CelInput | CelError | undefined)[] = []
  readonly #memory = new Map<unknown, Map<unknown, unknown>>()
  readonly #shared = new Set<unknown>()

  constructor(event: ViewedEvent) {
    this.event = event
  }

  /** The value of a field. */
  read(path: FieldPath): CelInput | CelError {
    const known = this.#values[path.index]
    if (known !== undefined) return known
    let value: CelInput | CelError
    try {
      const json = this.#find(path.names)
      value = json === undefined ? path.missing : toCelValue(json)
    } catch (error) {
      value = celError(error)
    }
    this.#values[path.index] = value
    return value
  }

  #find(names: readonly string[]): unknown {
    let value: unknown = this.event
    for (const name of names) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
      value = value === this.event ? this.#field(name) : fieldOf(value, name)
    }
    return value
  }

  /** An event that is not of a log is its first revision. */
  #field(name: string): unknown {
    if (name === 'revision') return this.event.revision ?? 1
    if (name === 'backfill') return this.event.backfill ?? false
    return fieldOf(this.event, name)
  }

  /**
   * Computations from this value, and from texts made of it, cost no work, since they are done once for all rules: otherwise the first rule
   * would pay for all others. Their number is bounded.
   */
  share(json: unknown): void {
    this.#shared.add(json)
  }

  /** The function's value for this JSON, computed once. */
  once<In, Out>(compute: (json: In, view: View) => Out, json: In): Out {
    let values = this.#memory.get(compute)
    if (values === undefined) {
      values = new Map()
      this.#memory.set(compute, values)
    }
    if (!values.has(json)) {
      const isShared = this.#shared.has(json)
      const value = isShared ? uncounted(() => compute(json, this)) : compute(json, this)
      if (isShared && typeof value === 'string') this.share(value)
      values.set(json, value)
    }
    // The map of a function has its results only.
    return values.get(json) as Out
  }
}

/** The view whose expression is evaluated at the moment: the functions of the library get no context. */
let current: View | undefined

/** Runs an evaluation whose functions read this view, and use up its allowance of work. */
export function withView<T>(view: View | undefined, evaluate: () => T): T {
  const before = current
  current = view
  try {
    return spending(view?.work ?? new Allowance(ALERT_WORK), evaluate)
  } finally {
    current = before
  }
}

/** The view of the evaluation that runs. */
export function currentView(): View | undefined {
  return current
}
