import { ManualClock } from 'rivulet/service'
import { describe, expect, it, vi } from 'vitest'
import { findAllService } from './caller.ts'

/** A service whose clock moves on by 5 s after each reported error. */
async function patientService() {
  const clock = new ManualClock()
  const errors: unknown[] = []
  const onError = (error: unknown) => {
    errors.push(error)
    // The executor schedules the next attempt before it reports the error.
    queueMicrotask(() => clock.advance(5_000))
  }
  const service = await findAllService({ clock, onError })
  return { service, errors, corpus: service.caller.service.corpus }
}

const DISK = new Error('The disk did not respond')

describe('a step of a FindAll run', () => {
  it('that fails is tried again, and the run has what it would have without the error', async () => {
    const undisturbed = await findAllService()
    const expected = await undisturbed.create()
    await undisturbed.events(expected)
    const { candidates } = await undisturbed.result(expected)

    const { service, errors, corpus } = await patientService()
    const fail = () => {
      throw DISK
    }
    vi.spyOn(corpus, 'search').mockImplementationOnce(fail)
    vi.spyOn(corpus, 'entity').mockImplementationOnce(fail)
    vi.spyOn(corpus, 'settled').mockRejectedValueOnce(DISK)
    vi.spyOn(corpus, 'document').mockImplementationOnce(fail)
    const id = await service.create()
    await service.events(id)
    const result = await service.result(id)

    expect(result.run.status.status).toBe('completed')
    expect(result.candidates.map(({ name, match_status }) => [name, match_status])).toEqual(
      candidates.map(({ name, match_status }) => [name, match_status]),
    )
    expect(errors).toEqual([DISK, DISK, DISK, DISK])
  })

  it('that fails four times in a row fails the run, with its reason', async () => {
    const { service, errors, corpus } = await patientService()
    const search = vi.spyOn(corpus, 'search').mockImplementation(() => {
      throw DISK
    })
    const id = await service.create()
    await service.events(id)
    const { run } = await service.result(id)

    expect(run.status).toMatchObject({ status: 'failed', termination_reason: 'error_occurred' })
    expect(search).toHaveBeenCalledTimes(4)
    expect(errors).toEqual([DISK, DISK, DISK, DISK])
  })
})
