import { VirtualTimeScheduler } from 'rxjs'
import type { SchedulerAction, Subscription } from 'rxjs'

/** A scheduler whose time moves on at once to what was scheduled. */
export class ImpatientScheduler extends VirtualTimeScheduler {
  override schedule<T>(
    work: (this: SchedulerAction<T>, state?: T) => void,
    delay?: number,
    state?: T,
  ): Subscription {
    const action = super.schedule(work, delay, state)
    queueMicrotask(() => this.flush())
    return action
  }
}
