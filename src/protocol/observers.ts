/** Those that observe one object. None costs one check. */
export class Observers<Observer extends object> {
  /** Each in an object of its own, since the same one may be added twice. */
  #list: readonly { readonly observer: Observer }[] = []

  get isEmpty(): boolean {
    return this.#list.length === 0
  }

  /** Adds an observer, until the returned function is called. */
  add(observer: Observer): () => void {
    const own = { observer }
    this.#list = [...this.#list, own]
    return () => {
      this.#list = this.#list.filter((other) => other !== own)
    }
  }

  /** What each observer returns. An observer that throws is skipped. */
  notify<Result>(call: (observer: Observer) => Result | undefined): readonly Result[] {
    return this.#list.flatMap(({ observer }) => ignoringErrors(() => call(observer)) ?? [])
  }

  /** Calls the function within what each observer puts around it, the first one outermost. */
  around<Result>(proceed: () => Result, wrap: (observer: Observer, proceed: () => Result) => Result): Result {
    const calls = this.#list.reduceRight(
      (inner, { observer }) =>
        () =>
          wrap(observer, inner),
      proceed,
    )
    return calls()
  }
}

/** An observer must not affect what it observes. */
export function ignoringErrors<Result>(call: () => Result): Result | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}
