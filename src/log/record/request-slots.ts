import { Observable } from 'rxjs'

/** Limits how many Observables are subscribed at once. The others wait in the order in which they came. */
export class RequestSlots {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** Subscribes to the request once a slot is free, and frees it when the request ends. */
  run<T>(request: Observable<T>): Observable<T> {
    return new Observable((subscriber) => {
      let isRunning = false
      const start = () => {
        isRunning = true
        this.#free -= 1
        subscriber.add(request.subscribe(subscriber))
      }
      subscriber.add(() => {
        this.#waiting.delete(start)
        if (isRunning) this.#leave()
      })
      if (this.#free > 0) start()
      else this.#waiting.add(start)
    })
  }

  #leave(): void {
    this.#free += 1
    const [next] = this.#waiting
    if (next === undefined) return
    this.#waiting.delete(next)
    next()
  }
}
