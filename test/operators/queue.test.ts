import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { Queue } from '../../operators/queue.ts'

it('a queue returns its items in order for any sequence of pushes and shifts', () => {
  const steps = fc.array(fc.tuple(fc.nat(200), fc.nat(200)), { maxLength: 20 })
  fc.assert(
    fc.property(steps, (bursts) => {
      const queue = new Queue<number>()
      const model: number[] = []
      let next = 0
      for (const [pushes, shifts] of bursts) {
        for (let i = 0; i < pushes; i++) {
          queue.push(next)
          model.push(next++)
        }
        for (let i = 0; i < shifts; i++) expect(queue.shift()).toBe(model.shift())
        expect(queue.size).toBe(model.length)
      }
      queue.clear()
      expect(queue.size).toBe(0)
      expect(queue.shift()).toBeUndefined()
    }),
  )
})
