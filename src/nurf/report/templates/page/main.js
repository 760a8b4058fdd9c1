const section = document.getElementById("explore");
if (section) explore(section);
document.querySelectorAll("figure").forEach(withDownloads);
document.querySelectorAll(".scroll > table").forEach(withCsv);
