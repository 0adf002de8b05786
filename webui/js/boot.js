// Runs before the first paint, as a plain script: the stored theme, so that the page does not flash in the other one.
try {
  const theme = localStorage.getItem("ducklm.theme");
  if (theme === "light" || theme === "system") document.documentElement.dataset.theme = theme;
} catch {
  // storage can be forbidden; dark is fine then
}
