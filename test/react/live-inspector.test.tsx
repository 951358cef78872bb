// @vitest-environment jsdom
import axe from 'axe-core'
import { act } from 'react'
import { renderToString } from 'react-dom/server'
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { LiveInspection, LiveStatus } from 'rivulet/live'
import { LiveInspector } from 'rivulet/react'
import { consoleErrors, mount } from './mount.ts'

const SINCE = Date.UTC(2026, 10, 22, 12)

const INSPECTION: LiveInspection = {
  url: '/live',
  role: 'leader',
  status: { state: 'live', since: SINCE },
  connections: 3,
  behind: 12,
  views: [
    {
      address: 'group?group=tgrp_1',
      status: { state: 'live', since: SINCE },
      rows: 10_000,
      position: 'p1',
      subscribers: 2,
      gaps: 1,
      lastFrame: SINCE + 1,
    },
    {
      address: 'alerts',
      status: { state: 'connecting', since: 0 },
      rows: 0,
      subscribers: 1,
      gaps: 0,
      lastFrame: 0,
    },
  ],
  events: [
    { time: SINCE, kind: 'open' },
    { time: SINCE + 1, kind: 'changes', view: 'group?group=tgrp_1', rows: 4 },
  ],
}

function inspected(inspection = INSPECTION) {
  const state = { inspection, inspections: 0, listeners: new Set<(status: LiveStatus) => void>() }
  return {
    state,
    status: {
      subscribe: (listener: (status: LiveStatus) => void) => {
        state.listeners.add(listener)
        return () => void state.listeners.delete(listener)
      },
      getSnapshot: () => state.inspection.status,
    },
    inspect: () => {
      state.inspections++
      return state.inspection
    },
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  onTestFinished(() => void vi.useRealTimers())
})

/** As a click or the Enter key on the summary does, which jsdom does not know. */
async function toggle(container: HTMLElement) {
  const details = container.querySelector('details')
  await act(async () => {
    details?.toggleAttribute('open')
    details?.dispatchEvent(new Event('toggle'))
  })
}

const cellsOf = (container: HTMLElement) =>
  [...container.querySelectorAll('tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))

describe('the inspector', () => {
  it('shows the state when it is closed, and reads nothing more', async () => {
    const live = inspected()
    const { text } = await mount(<LiveInspector live={live} />)
    await act(async () => vi.advanceTimersByTime(10_000))

    expect(text()).toBe('Rivulet: live')
    expect(live.state.inspections).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('shows connections, views and the last frames when it is opened, and what they become', async () => {
    const errors = consoleErrors()
    const live = inspected()
    const { container, text } = await mount(<LiveInspector live={live} />, { strict: true })
    await toggle(container)

    expect(text()).toContain(
      '/live: leader of its tabs, live since 12:00:00.000, 3 connections, 12 ms behind',
    )
    expect(cellsOf(container)).toEqual([
      ['group?group=tgrp_1', 'live', 'p1', '10000', '2', '1', '12:00:00.001'],
      ['alerts', 'connecting', '', '0', '1', '0', ''],
      ['12:00:00.001', 'changes', 'group?group=tgrp_1', '4'],
      ['12:00:00.000', 'open', '', ''],
    ])
    live.state.inspection = {
      ...INSPECTION,
      connections: 4,
      status: { state: 'stale', since: SINCE, error: new Error('cut') },
    }
    await act(async () => vi.advanceTimersByTime(500))
    expect(text()).toContain('stale since 12:00:00.000, cut, 4 connections')
    expect(errors).toEqual([])
  })

  it('leaves neither timer nor subscription after it is closed or unmounted', async () => {
    const live = inspected()
    const { container, unmount } = await mount(<LiveInspector live={live} defaultOpen />, { strict: true })
    expect(vi.getTimerCount()).toBe(1)
    await toggle(container)
    expect(vi.getTimerCount()).toBe(0)
    await toggle(container)
    await unmount()

    expect(vi.getTimerCount()).toBe(0)
    expect(live.state.listeners.size).toBe(0)
  })

  it.each([{ isOpen: false }, { isOpen: true }])(
    'has no fault that axe finds, open: $isOpen',
    async ({ isOpen }) => {
      const { container } = await mount(<LiveInspector live={inspected()} defaultOpen={isOpen} />)

      const { violations, passes } = await axe.run(container)

      expect(violations).toEqual([])
      expect(passes.length).toBeGreaterThan(2)
    },
  )

  it('is reached by the keyboard: its summary and what scrolls', async () => {
    const { container } = await mount(<LiveInspector live={inspected()} defaultOpen />)

    expect(container.querySelector('details > summary')).not.toBeNull()
    expect(container.querySelector<HTMLElement>('.rivulet-inspector-content')?.tabIndex).toBe(0)
  })

  it('has no style element, no style attribute and no script, which a strict policy forbids', async () => {
    const html = renderToString(<LiveInspector live={inspected()} defaultOpen />)
    const { container } = await mount(<LiveInspector live={inspected()} defaultOpen />)

    expect(html + container.innerHTML).not.toMatch(/<style|<script| style=/)
    expect(document.querySelectorAll('style')).toHaveLength(0)
  })
})
