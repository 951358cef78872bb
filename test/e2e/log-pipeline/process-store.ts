import type { Fence, LogStore } from '../../../src/log/store/contract.ts'

/** What happens to one write of a store. */
export interface WriteScript {
  /** `fail` rejects, `kill` kills the process. */
  readonly does: 'work' | 'fail' | 'kill'
  /** Before the write has its effect, or after it. */
  readonly step: 'before' | 'after'
}

/** What the store of one process depends on. */
export interface StoreConditions {
  /** Waited for before and after each call. */
  readonly latency: () => Promise<void>
  /** Called for each write. */
  readonly write: (write: string) => WriteScript
  /** The process must be killed. */
  readonly onKill: () => void
  /** A write had its effect. */
  readonly onEffect: (write: string, args: readonly unknown[]) => void
  /** The process gets an error from a write. */
  readonly onFailure: (write: string, args: readonly unknown[]) => void
}

/** The message of a scripted failure. */
export const DISK_FULL = 'the disk is full'

/** The methods that change what the audit knows. */
const WRITES = new Set(['claim', 'release', 'append', 'commit', 'inbox.put'])

/** The methods that may take any time. */
const WAITS = new Set(['wait', 'claim', 'inbox.wait'])

/** The methods that return no promise. */
const SYNCHRONOUS = new Set(['prepareClose', 'inbox.isFull'])

/** What a call to a store is about: its method, and the name that is claimed. */
interface Call {
  readonly method: string
  readonly claimed: string | undefined
}

/** The calls of one process to a store. They never settle once the process is killed. */
export class ProcessStore {
  /** What the process opens. */
  readonly store: LogStore
  readonly #target: LogStore
  readonly #conditions: StoreConditions
  /** The calls under way, without those that wait for another one. */
  readonly #calls = new Set<Call>()
  #isKilled = false
  #isLanding = false
  #isSuspended = false

  constructor(target: LogStore, conditions: StoreConditions) {
    this.#target = target
    this.#conditions = conditions
    this.store = this.#proxyOf(target, '')
  }

  /** Whether a call is under way. */
  get isBusy(): boolean {
    return this.#calls.size > 0
  }

  /** Whether a commit under this name is under way. */
  isCommitting(name: string): boolean {
    return [...this.#calls].some(({ method, claimed }) => method === 'commit' && claimed === name)
  }

  /**
   * No call settles any more.
   *
   * @param isLanding Whether the writes that are on their way still have their effect.
   */
  kill(isLanding: boolean): void {
    this.#isKilled = true
    this.#isLanding = isLanding
  }

  /** No claim settles any more. A suspended process that claims again would be another one. */
  suspend(): void {
    this.#isSuspended = true
  }

  /** @param prefix The name of the part of the store, with a dot. */
  #proxyOf<Part extends object>(part: Part, prefix: string): Part {
    return new Proxy(part, {
      get: (_, property) => {
        const value: unknown = Reflect.get(part, property)
        if (typeof property !== 'string') return value
        const name = `${prefix}${property}`
        if (typeof value === 'object' && value !== null) return this.#proxyOf(value, `${name}.`)
        if (typeof value !== 'function') return value
        if (SYNCHRONOUS.has(name)) return (...args: unknown[]): unknown => Reflect.apply(value, part, args)
        return (...args: unknown[]) =>
          this.#call(name, args, async () => {
            const result: unknown = await Reflect.apply(value, part, args)
            return result
          })
      },
    })
  }

  async #call(name: string, args: readonly unknown[], proceed: () => Promise<unknown>): Promise<unknown> {
    if (this.#isKilled) return never()
    const call = { method: name, claimed: isFence(args[0]) ? args[0].name : undefined }
    if (!WAITS.has(name)) this.#calls.add(call)
    try {
      const result = await this.#played(name, args, proceed)
      await this.#conditions.latency()
      if (!this.#isKilled) return result
    } catch (error) {
      if (!this.#isKilled) {
        if (WRITES.has(name)) this.#conditions.onFailure(name, args)
        throw error
      }
    } finally {
      this.#calls.delete(call)
    }
    return never()
  }

  async #played(name: string, args: readonly unknown[], proceed: () => Promise<unknown>): Promise<unknown> {
    const { latency, write, onEffect } = this.#conditions
    const isWrite = WRITES.has(name)
    await latency()
    // A claim of a dead process would never be given up.
    if (name === 'claim' && this.#isSuspended) return never()
    if (this.#isKilled && !(this.#isLanding && isWrite && name !== 'claim')) return undefined
    const script = isWrite && !this.#isKilled ? write(name) : undefined
    if (script?.step === 'before') this.#strike(script)
    const result = await proceed()
    if (isWrite) onEffect(name, args)
    if ((this.#isKilled || this.#isSuspended) && isFence(result)) {
      await this.#target.release(result)
      return never()
    }
    if (script?.step === 'after') this.#strike(script)
    return result
  }

  #strike({ does }: WriteScript): void {
    if (does === 'work') return
    if (does === 'kill') this.#conditions.onKill()
    throw new Error(DISK_FULL)
  }
}

function never(): Promise<never> {
  return new Promise(() => {})
}

/** Whether the value is a claim of a name. */
export function isFence(value: unknown): value is Fence {
  return typeof value === 'object' && value !== null && 'name' in value && 'token' in value
}
