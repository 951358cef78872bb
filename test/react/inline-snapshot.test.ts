import { runInNewContext } from 'node:vm'
import { JSDOM } from 'jsdom'
import type { LiveSnapshot } from 'rivulet/live'
import { describe, expect, it } from 'vitest'
import { inlineSnapshot } from 'rivulet/react'

const HOSTILE = [
  '</script><script>alert(1)</script>',
  '<!--<script>',
  ']]>',
  '&lt;&amp;',
  'line\u2028paragraph\u2029end',
  'quote " backslash \\ tab \t',
  '\ud83d\ude00 \ud800',
]

const snapshot: LiveSnapshot = {
  rows: { rows: HOSTILE.map((text, index) => [`${index}`, { [text]: text }]), position: 'p1' },
}

describe('a snapshot within HTML', () => {
  it('is read as it was written, whatever its rows contain', () => {
    const html = `<script type="application/json" id="initial">${inlineSnapshot(snapshot)}</script><p>after</p>`
    const { document } = new JSDOM(html).window

    expect(JSON.parse(document.getElementById('initial')?.textContent ?? '')).toEqual(snapshot)
    expect(document.querySelectorAll('script')).toHaveLength(1)
    expect(document.querySelector('p')?.textContent).toBe('after')
  })

  it('breaks out where JSON is written without it, so this test can fail', () => {
    const html = `<script type="application/json">${JSON.stringify(snapshot)}</script>`

    expect(new JSDOM(html).window.document.querySelectorAll('script').length).toBeGreaterThan(1)
  })

  it('is an expression of JavaScript as well', () => {
    expect(JSON.stringify(runInNewContext(`(${inlineSnapshot(snapshot)})`))).toBe(JSON.stringify(snapshot))
  })
})
