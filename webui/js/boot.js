// Runs before the first paint, as a plain script: the stored theme, so that the page does not flash in the other one.
try {
  const theme = localStorage.getItem("ducklm.theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // storage can be forbidden; the system's theme is fine then
}
