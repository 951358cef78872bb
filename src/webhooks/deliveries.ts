import { Observable, Subject } from 'rxjs'
import { gateOf } from '../protocol/gate.ts'
import type { Gate } from '../protocol/gate.ts'
import type { WebhookDelivery } from '../protocol/webhook.ts'
import type { MemoryInbox } from './memory-inbox.ts'

/** Deliveries emitted per turn of the event loop, so that a long backlog delays no response. */
const TURN = 256

/** Calls a function in a later turn of the event loop. Only Node and compatible runtimes have `setImmediate`. */
export const later: (work: () => void) => void =
  typeof setImmediate === 'function' ? setImmediate : setTimeout

/** Emits the deliveries of a memory inbox, each once, to all subscribers. */
export class Deliveries {
  /** Hot. Subscribers pause it by their gates: the slowest one pauses it for all. */
  readonly stream: Observable<WebhookDelivery>
  readonly #inbox: MemoryInbox
  readonly #onFailure: () => void
  readonly #emitted = new Subject<WebhookDelivery>()
  /** The gates of the subscribers. */
  readonly #gates: Gate[] = []
  #isScheduled = false

  /** @param onFailure Called before the stream errors, because the inbox can no longer emit. */
  constructor(inbox: MemoryInbox, onFailure: () => void) {
    this.#inbox = inbox
    this.#onFailure = onFailure
    this.stream = new Observable((subscriber) => {
      const subscription = this.#emitted.subscribe(subscriber)
      const gate = gateOf(subscriber)
      if (gate !== undefined) subscription.add(this.#obey(gate))
      this.schedule()
      return subscription
    })
  }

  /** Emits in a later turn of the event loop, so that no subscriber delays a response. */
  schedule(): void {
    // A new subscriber schedules it too. Some runtimes end timers with the request, so none is set without a subscriber.
    if (this.#isScheduled || !this.#emitted.observed) return
    this.#isScheduled = true
    later(() => {
      this.#isScheduled = false
      let turn = 0
      while (turn < TURN && !this.#isPaused() && this.#emitNext()) turn += 1
      if (turn === TURN) this.schedule()
    })
  }

  /** Emits all that the inbox has to the current subscribers, and completes. */
  close(): void {
    // Their senders got a 2xx, and a memory inbox loses them at the end of the process.
    while (this.#emitNext());
    this.#emitted.complete()
  }

  #isPaused(): boolean {
    return this.#gates.some((gate) => gate.closed)
  }

  /** Emits the next delivery. Returns false if there is no subscriber or no delivery. */
  #emitNext(): boolean {
    if (!this.#emitted.observed) return false
    const delivery = this.#take()
    if (delivery === undefined) return false
    this.#emitted.next(delivery)
    return true
  }

  #take(): WebhookDelivery | undefined {
    try {
      return this.#inbox.take()
    } catch (error) {
      this.#onFailure()
      this.#emitted.error(error)
      return undefined
    }
  }

  /** Pauses while the gate is closed. Returns a function that removes the gate. */
  #obey(gate: Gate): () => void {
    this.#gates.push(gate)
    const stopListening = gate.onChange((isClosed) => {
      if (!isClosed) this.schedule()
    })
    return () => {
      stopListening()
      this.#gates.splice(this.#gates.indexOf(gate), 1)
      // It may have been the closed one.
      this.schedule()
    }
  }
}
