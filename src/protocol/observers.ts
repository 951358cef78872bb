import { checkFunction, checkObject } from './check.ts'
import { isThenable } from './thenable.ts'

/** The observers of one object. Without observers, a notification costs one check. */
export class Observers<Observer extends object> {
  /** Each observer is in its own object, since the same one may be added twice. */
  #list: readonly { readonly observer: Observer }[] = []
  readonly #methods: readonly string[]

  /** @param methods The methods of an observer, each of which may be missing. */
  constructor(methods: Readonly<Record<keyof Observer & string, true>>) {
    this.#methods = Object.keys(methods)
  }

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  /** Adds an observer, until the returned function is called. Throws an ArgumentError for what is none. */
  add(observer: Observer): () => void {
    checkObject('observer', observer)
    for (const name of this.#methods) {
      if (observer[name] !== undefined) checkFunction(`observer.${name}`, observer[name])
    }
    const own = { observer }
    this.#list = [...this.#list, own]
    return () => {
      this.#list = this.#list.filter((other) => other !== own)
    }
  }

  /** Calls each observer, and returns the results. An observer that throws is skipped. */
  notify<Result>(call: (observer: Observer) => Result | undefined): readonly Result[] {
    return this.#list.flatMap(({ observer }) => ignoringErrors(() => call(observer)) ?? [])
  }

  /**
   * Calls the function within the wrappers of all observers, the first one outermost. The function is called once, and its result is
   * returned or its error thrown, whatever the observers do.
   */
  around<Result>(call: () => Result, wrap: (observer: Observer, proceed: () => Result) => unknown): Result {
    return this.#list.reduceRight<() => Result>(
      (inner, { observer }) =>
        () =>
          guarded(inner, (proceed) => wrap(observer, proceed)),
      call,
    )()
  }
}

/** Calls the function once, when `wrap` calls it or after that, and returns only its result. */
function guarded<Result>(call: () => Result, wrap: (proceed: () => Result) => unknown): Result {
  let outcome: (() => Result) | undefined
  const proceed = () => {
    outcome ??= outcomeOf(call)
    return outcome()
  }
  const observed = ignoringErrors(() => wrap(proceed))
  if (isThenable(observed)) observed.then(undefined, () => {})
  return proceed()
}

/** Calls the function. The returned function has the same result, or throws the same error. */
function outcomeOf<Result>(call: () => Result): () => Result {
  try {
    const result = call()
    return () => result
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** An observer must not affect the observed object. */
export function ignoringErrors<Result>(call: () => Result): Result | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}
