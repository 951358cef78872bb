// @vitest-environment jsdom
import { act } from 'react'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { TimeAxis } from '../../../src/dashboard/page/monitors/time-axis.tsx'
import { timelineEntry } from '../../../src/dashboard/page/monitors/timeline.ts'
import { mount } from '../../react/mount.ts'

const ENTRY = timelineEntry('e1', {
  type: 'monitor.completion',
  event: null,
  time: null,
  recorded: Date.parse('2026-01-31T12:00:00Z'),
})

/** An axis of these entries. Another `key` replaces its element. */
const axis = (entries: readonly (typeof ENTRY)[], key = 'first') => (
  <TimeAxis key={key} entries={entries} timeOf={({ found }) => found} />
)

describe('the axis of time', () => {
  /** The elements that are observed, with what is to be called when they are resized. */
  const observed = new Map<Element, () => void>()
  let width = 300

  beforeEach(() => {
    width = 300
    vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockImplementation(() => width)
    vi.stubGlobal(
      'ResizeObserver',
      class implements ResizeObserver {
        readonly #resized: () => void
        readonly #elements: Element[] = []
        constructor(resized: ResizeObserverCallback) {
          this.#resized = () => resized([], this)
        }
        observe(element: Element) {
          this.#elements.push(element)
          observed.set(element, this.#resized)
        }
        unobserve(element: Element) {
          observed.delete(element)
        }
        disconnect() {
          for (const element of this.#elements) observed.delete(element)
        }
      },
    )
  })

  afterEach(() => {
    vi.unstubAllGlobals()
    vi.restoreAllMocks()
  })

  const resize = async (to: number) => {
    width = to
    await act(async () => {
      for (const resized of observed.values()) resized()
    })
  }

  const drawn = (container: HTMLElement) => container.querySelector('svg')?.getAttribute('width')

  it('appears with the first entry, as wide as its element', async () => {
    const { container, render } = await mount(axis([]))
    expect(drawn(container)).toBeUndefined()

    await render(axis([ENTRY]))
    expect(drawn(container)).toBe('300')
    await resize(500)
    expect(drawn(container)).toBe('500')
  })

  it('follows the width of an element that appears again', async () => {
    const { container, render } = await mount(axis([ENTRY]), { strict: true })
    await render(axis([]))
    expect(observed.size).toBe(0)

    await render(axis([ENTRY]))
    expect([...observed.keys()]).toEqual([container.querySelector('.time-axis')])
    await resize(200)
    expect(drawn(container)).toBe('200')
  })

  it('observes nothing when it is gone', async () => {
    const { render, unmount } = await mount(axis([ENTRY]))
    await render(axis([ENTRY], 'second'))
    expect(observed.size).toBe(1)
    await unmount()
    expect(observed.size).toBe(0)
  })
})
