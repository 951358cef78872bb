import DefaultTheme from 'vitepress/theme'
// VitePress adds a style that a theme imports.
// oxlint-disable-next-line import/no-unassigned-import
import './style.css'

export default DefaultTheme
